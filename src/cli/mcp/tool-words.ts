/** Hints name commands and flags; an agent that calls tools needs the names of tools and parameters. Pure. */

import { PARAMETER_NAMES } from '../../protocol/parameters.js'
import { flagOf } from '../flags/model-flags.js'

const COMMANDS: Readonly<Record<string, string>> = {
  wait: 'wait_run',
  download: 'download_run',
  status: 'get_run',
  list: 'list_runs',
  show: 'show_run',
  models: 'list_models',
  batch: 'run_batch',
  'run image': 'create_image',
  'run video': 'create_video',
  'run model': 'create_model_run',
}

const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/ ?See `rushes [^`]*--help`\./g, ''],
  [/Example: `rushes run [^`]*`/g, 'Example: {"prompt": "a red fox in fresh snow"}'],
  [/--overwrite\b/g, 'overwrite: true'],
  [/(?:with )?-o <path>/g, 'with output'],
  [/--dry-run\b/g, 'plan_batch'],
  [/--only <glob>/g, 'only'],
  [/--max-runs allows/g, 'max_runs allows'],
  ...PARAMETER_NAMES.map((name) => [new RegExp(`${flagOf(name)}(?![\\w-])`, 'g'), name] as const),
]

/** A message or hint in the words of the tools. Commands that no tool has stay: they are for the user. */
export const inToolWords = (said: string): string =>
  PHRASES.reduce((text, [phrase, word]) => text.replace(phrase, word), said).replace(
    /`rushes (run \w+|\w+)\b[^`]*`/g,
    (command, words: string) => COMMANDS[words] ?? command,
  )

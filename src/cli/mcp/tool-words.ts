/** Hints name commands and flags; an agent that calls tools needs the names of tools and parameters. Pure. */

import { flagOf, PARAMETER_NAMES } from '../../protocol/parameters.js'

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

const MODEL_FLAGS = PARAMETER_NAMES.map((name) => [flagOf(name), name] as const)

/** Commands in backticks that no tool carries out are left as they are: they are for the user. */
const COMMAND = /(`rushes [^`]*`)/

/** Whole sentences, also with a command in them. */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/ ?See `rushes [^`]*--help`\./g, ''],
  [/Example: `rushes run [^`]*`/g, 'Example: {"prompt": "a red fox in fresh snow"}'],
  [/ ?To see the request body, add --dry-run\./g, ''],
  [/, run:<id> or -\./g, ' or run:<id>.'],
  [
    /Use ((?:--(?:base-url|profile) \S+|--local)(?: --(?:base-url|profile) \S+)*)( instead of --local)?\.(?= |$)/g,
    'It needs a server that the user starts with `rushes mcp $1`$2.',
  ],
  [/--only (\S+) --force/g, 'only: ["$1"] and force: true'],
  [/Set the model with --model <provider\/name>, /g, 'Give model, or ask the user to set '],
]

/** What the flags of the commands are called as parameters of the tools. */
const PARAMETERS = [
  'concurrency',
  'fail-fast',
  'here',
  'kind',
  'limit',
  'max-runs',
  'model',
  'only',
  'since',
  'status',
]

const FLAGS: readonly (readonly [RegExp, string])[] = [
  [/--(overwrite|force)(?![\w-])/g, '$1: true'],
  [/(?:with )?-o <path>/g, 'with output'],
  [/--dry-run(?![\w-])/g, 'plan_batch'],
  [/--input is not/g, 'input is not'],
  ...[...PARAMETERS.map((name) => [`--${name}`, name.replace('-', '_')] as const), ...MODEL_FLAGS].map(
    ([flag, name]) => [new RegExp(`(?<![\\w-])${flag}(?![\\w-])(?: <[^>]*>)?`, 'g'), name] as const,
  ),
]

const replaceAll = (text: string, phrases: typeof FLAGS): string =>
  phrases.reduce((replaced, [phrase, word]) => replaced.replace(phrase, word), text)

/** A message or hint in the words of the tools. */
export const inToolWords = (said: string): string =>
  replaceAll(said, SENTENCES)
    .split(COMMAND)
    .map((part) => {
      const [, words = ''] = /^`rushes (run \w+|\w+)/.exec(part) ?? []
      return words === '' ? replaceAll(part, FLAGS) : (COMMANDS[words] ?? part)
    })
    .join('')

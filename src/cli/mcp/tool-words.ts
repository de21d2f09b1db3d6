/** Messages and hints of commands, in the words of tools. Pure. */
import { flagOf, PARAMETER_NAMES } from '../../protocol/parameters.js'

const COMMANDS: Readonly<Record<string, string>> = {
  wait: 'wait_run',
  download: 'download_run',
  cancel: 'cancel_run',
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

/** Matches commands in backticks. A command that no tool can carry out is kept: it is for the user. */
const COMMAND = /(`rushes [^`]*`)/

/** Phrases of hints that contain a command, with their replacements. */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/ ?See `rushes [^`]*--help`\./g, ''],
  [/Example: `rushes run [^`]*`/g, 'Example: {"prompt": "a red fox in fresh snow"}'],
  [/ ?To see the request body, add --dry-run\./g, ''],
  [/, run:<id> or -\./g, ' or run:<id>.'],
  [
    /Use ((?:--(?:base-url|profile) \S+|--local)(?: --(?:base-url|profile) \S+)*)( instead of --local)?\.(?= |$)/g,
    'It needs a server that the user starts with `rushes mcp $1`$2.',
  ],
  [/`rushes batch [^`]*--only (\S+) --force`/g, 'run_batch with only: ["$1"] and force: true'],
  // The command leaves out --force, because it would pay again.
  [/`rushes batch (?![^`]*--(?:force|help))[^`]*`/g, 'run_batch without force'],
  [/--only (\S+) --force/g, 'only: ["$1"] and force: true'],
  [/Set the model with --model <provider\/name>, /g, 'Give model, or ask the user to set '],
]

/** Command flags that are also tool parameters. */
const PARAMETERS = [
  'concurrency',
  'fail-fast',
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
  [/--label ("[^"]*")/g, 'labels: [$1]'],
  [/--input is not/g, 'input is not'],
  ...[...PARAMETERS.map((name) => [`--${name}`, name.replace('-', '_')] as const), ...MODEL_FLAGS].map(
    ([flag, name]) => [new RegExp(`(?<![\\w-])${flag}(?![\\w-])(?: <[^>]*>)?`, 'g'), name] as const,
  ),
]

const replaceAll = (text: string, phrases: typeof FLAGS): string =>
  phrases.reduce((replaced, [phrase, word]) => replaced.replace(phrase, word), text)

/** Replaces commands and flags in a message or hint by tools and parameters, for an agent. */
export const inToolWords = (message: string): string =>
  replaceAll(message, SENTENCES)
    .split(COMMAND)
    .map((part) => {
      const [, words = ''] = /^`rushes (?!models (?:add|remove|--))(run \w+|\w+)/.exec(part) ?? []
      return words === '' ? replaceAll(part, FLAGS) : (COMMANDS[words] ?? part)
    })
    .join('')

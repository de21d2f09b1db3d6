/**
 * Answers of the tools: runs as results, errors, and the messages of commands in the words of tools. Unknown values are
 * null. Pure.
 */
import { RushesError } from '../../errors.js'
import { flagOf, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { CostLimit } from '../models/cost-limit.js'
import { plural } from '../terminal/format.js'
import { type ErrorJson, errorJson } from '../terminal/output.js'
import type { Job, JobOutcome } from './job.js'
import { type Answer, MAX_WAIT_MS, type ResultFile, shownPath } from './tool.js'

/** What the session may still create, for the answers of tools. */
export const leftJson = ({ left: { runs, millionths } }: CostLimit) => ({
  left_in_session: runs,
  estimate_left_in_session: millionths === undefined ? null : amountOf(millionths),
})

/** `this session may create 19 more runs, for at most 4.6 USD` */
export function leftText({ left: { runs = 0, millionths }, prices }: CostLimit): string {
  const amount = millionths === undefined ? '' : `, for at most ${amountText(millionths, prices.currency)}`
  return `this session may create ${plural(runs, 'more run')}${amount}`
}

interface RunResult {
  readonly id: string | null
  readonly state: 'running' | 'succeeded' | 'failed' | 'unknown'
  readonly status: string | null
  readonly kind: string | null
  readonly model: string | null
  readonly urls: readonly string[]
  readonly files: readonly (ResultFile & { readonly sha256: string })[]
  readonly request_id: string | null
  readonly error: ErrorJson | null
}

/** Returns the error in its `--json` form, with a hint that names tools. */
export const errorResult = (error: RushesError): ErrorJson =>
  errorJson(
    error.with({
      message: inToolWords(printable(error.message)),
      hint: error.hint === undefined ? undefined : inToolWords(error.hint),
    }),
  )

/** Codes of errors after which the run continues. */
const CONTINUES: readonly string[] = ['wait_timeout', 'interrupted']

/** Error for a job without a result yet, which continues without the call. */
export const notReady = (what: string, hint: string): RushesError =>
  new RushesError('wait_timeout', `${what} is not ready after ${MAX_WAIT_MS / 1_000} s. Nothing was sent.`, {
    hint,
  })

export interface About {
  readonly requestId?: string | undefined
  /** Whether an unfinished run is an error. */
  readonly mustBeFinished?: boolean
}

/** Returns the result of a finished job (`outcome`), or of a job that continues without the call. */
export function runResult(
  job: Job,
  outcome: JobOutcome | undefined,
  { requestId, mustBeFinished = false }: About,
): RunResult {
  const [printed] = outcome?.objects ?? []
  const line: Readonly<Record<string, unknown>> = isObject(printed) ? printed : {}
  const id = job.id ?? text(line.id) ?? null
  const state = id === null ? undefined : job.states.get(id)
  const found = outcome?.errors.find(({ code }) => mustBeFinished || !CONTINUES.includes(code))
  const phase = state?.phase
  return {
    id,
    state:
      id === null || found?.code === 'run_not_found'
        ? 'unknown'
        : phase === undefined || phase === 'running'
          ? 'running'
          : phase,
    status: state?.status ?? text(line.status) ?? null,
    kind: text(line.kind) ?? null,
    model: text(line.model) ?? null,
    urls: phase === 'succeeded' ? (state?.urls ?? []) : [],
    files: filesIn(line.files),
    request_id: requestId ?? null,
    error: found === undefined ? null : errorResult(found),
  }
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const filesIn = (value: unknown): RunResult['files'] =>
  Array.isArray(value) ? value.map(({ url: _, ...file }) => file) : []

interface AnswerOptions {
  readonly warnings?: readonly string[]
  /** Name of the tool that repeats a create without an id. */
  readonly creator?: string
  /** Last line, and further keys of the structured answer. */
  readonly line?: string | undefined
  readonly further?: Answer['structured']
}

export function runsAnswer(runs: readonly RunResult[], options: AnswerOptions = {}): Answer {
  const { warnings = [], creator = '', line, further } = options
  const errors = runs.flatMap(({ error }) => error ?? [])
  const [error] = errors
  return {
    text: [
      ...runs.map((run) => lineOf(run, creator)),
      ...waitHint(runs),
      ...(line === undefined ? [] : [line]),
      ...warnings.map(warningLine),
    ].join('\n'),
    structured: {
      runs,
      ...further,
      warnings,
      ...(error === undefined ? {} : { error }),
    },
    files: runs.flatMap(({ files }) => files),
    isError: errors.length > 0,
  }
}

const warningLine = (warning: string): string => `warning: ${warning}`

function lineOf({ id, state, status, urls, files, request_id, error }: RunResult, creator: string): string {
  if (error !== null) return JSON.stringify({ error })
  if (id === null)
    return (
      `The service has not answered the create yet. Call ${creator} again with the same arguments and ` +
      `request_id "${request_id}" to get the run id; nothing is paid twice.`
    )
  if (state === 'running') return `${id} is still running (${status ?? 'no status yet'}).`
  const saved = files.map(
    ({ path, bytes, content_type }) => `${shownPath(path)} (${content_type}, ${formatBytes(bytes)})`,
  )
  const end = state === 'failed' && status !== null && status !== state ? `${state} (${status})` : state
  return `${id} ${end}${saved.length > 0 ? `: ${saved.join(', ')}` : urls.length > 0 ? `: ${urls.join(', ')}` : ''}`
}

function waitHint(runs: readonly RunResult[]): readonly string[] {
  const ids = runs.flatMap(({ id, state, error }) =>
    state === 'running' && id && error === null ? [id] : [],
  )
  if (ids.length === 0) return []
  return [
    `Call wait_run with ${JSON.stringify({ ids })} to wait up to ${MAX_WAIT_MS / 1_000} s more. Waiting is ` +
      `free. Do not create it again.`,
  ]
}

/** Returns the answer for an error thrown before a run existed. */
export function errorAnswer(error: RushesError, warnings: readonly string[] = []): Answer {
  const result = errorResult(error)
  return {
    text: [JSON.stringify({ error: result }), ...warnings.map(warningLine)].join('\n'),
    structured: { error: result, warnings },
    isError: true,
  }
}

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

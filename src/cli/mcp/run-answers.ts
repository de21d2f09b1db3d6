/** The answers of the tools that are about runs. Pure. */
import { RushesError } from '../../errors.js'
import { MAX_WAIT_MS } from '../../mcp/definitions.js'
import { shownPath } from '../../mcp/result.js'
import type { Answer, ResultFile } from '../../mcp/tool.js'
import { formatBytes } from '../../protocol/byte-size.js'
import { isObject } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'
import { errorJson } from '../terminal/error-lines.js'
import type { Job, Outcome } from './job.js'
import { inToolWords } from './tool-words.js'

export interface RunResult {
  readonly id: string | null
  readonly state: 'running' | 'succeeded' | 'failed' | 'unknown'
  readonly status: string | null
  readonly kind: string | null
  readonly model: string | null
  readonly urls: readonly string[]
  readonly files: readonly (ResultFile & { readonly sha256: string })[]
  readonly request_id: string | null
  readonly error: ErrorResult | null
}

type ErrorResult = ReturnType<typeof errorJson>['error']

/** The shape of `--json`, with a hint in the words of the tools. */
export const errorResult = (error: RushesError): ErrorResult =>
  errorJson(
    error.with({
      message: inToolWords(printable(error.message)),
      hint: error.hint === undefined ? undefined : inToolWords(error.hint),
    }),
  ).error

/** Errors of a run that continues: the call has ended, and nothing is wrong. */
const CONTINUES: readonly string[] = ['wait_timeout', 'interrupted']

/** Work that ends soon, and continues without the call. */
export const notReady = (what: string, tool: string): RushesError =>
  new RushesError('wait_timeout', `${what} is not ready after ${MAX_WAIT_MS / 1_000} s. Nothing was sent.`, {
    hint: `Call ${tool} again with the same arguments to continue waiting.`,
  })

export interface About {
  readonly requestId?: string | undefined
  /** Whether a run that is not finished is an error. */
  readonly mustBeFinished?: boolean
}

/** What is known of a run whose job is done, or continues without the call. */
export function runResult(
  job: Pick<Job, 'id' | 'states'>,
  outcome: Outcome | undefined,
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
        : phase === undefined || phase === 'going'
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
  Array.isArray(value)
    ? value.map(({ path, bytes, content_type, sha256 }) => ({ path, bytes, content_type, sha256 }))
    : []

interface AnswerOptions {
  readonly warnings?: readonly string[]
  readonly inline?: boolean
  /** Name of the tool that repeats a create which has no id yet. */
  readonly creator?: string
}

export function runsAnswer(runs: readonly RunResult[], options: AnswerOptions = {}): Answer {
  const { warnings = [], inline = false, creator = '' } = options
  const errors = runs.flatMap(({ error }) => error ?? [])
  const [error] = errors
  return {
    text: [...runs.map((run) => lineOf(run, creator)), ...sayHowToWait(runs), ...warnings.map(said)].join(
      '\n',
    ),
    structured: { runs, warnings, ...(error === undefined ? {} : { error }) },
    files: runs.flatMap(({ files }) => files),
    inline,
    isError: errors.length > 0,
  }
}

const said = (warning: string): string => `warning: ${warning}`

function lineOf({ id, state, status, urls, files, request_id, error }: RunResult, creator: string): string {
  if (error !== null) return JSON.stringify({ error })
  if (id === null)
    return `The service has not answered the create yet. Call ${creator} again with the same arguments and request_id "${request_id}" to get the run id; nothing is paid twice.`
  if (state === 'running') return `${id} is still running (${status ?? 'no status yet'}).`
  const saved = files.map(
    ({ path, bytes, content_type }) => `${shownPath(path)} (${content_type}, ${formatBytes(bytes)})`,
  )
  return `${id} ${state}${saved.length > 0 ? `: ${saved.join(', ')}` : urls.length > 0 ? `: ${urls.join(', ')}` : ''}`
}

function sayHowToWait(runs: readonly RunResult[]): readonly string[] {
  const ids = runs.flatMap(({ id, state, error }) =>
    state === 'running' && id && error === null ? [id] : [],
  )
  if (ids.length === 0) return []
  return [
    `Call wait_run with ${JSON.stringify({ ids })} to wait up to ${MAX_WAIT_MS / 1_000} s more. Waiting is free. Do not create it again.`,
  ]
}

/** For what was thrown before there was a run. */
export function errorAnswer(error: RushesError, warnings: readonly string[] = []): Answer {
  const result = errorResult(error)
  return {
    text: [JSON.stringify({ error: result }), ...warnings.map(said)].join('\n'),
    structured: { error: result, warnings },
    isError: true,
  }
}

/** Answers of the tools: a few lines for the agent, the same as JSON, links to files, and small pictures. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { RushesError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { printable, printableJson, withoutControls } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { CostLimit } from '../models/cost-limit.js'
import { plural } from '../terminal/format.js'
import { type ErrorJson, errorJson } from '../terminal/output.js'
import { type Job, MAX_WAIT_MS } from './session.js'

/** A file that a call has written or found. */
export interface ResultFile {
  /** Absolute path. */
  readonly path: string
  readonly bytes: number
  readonly content_type: string
}

export interface Answer {
  readonly lines: readonly string[]
  readonly structured: Readonly<Record<string, unknown>>
  readonly warnings?: readonly string[]
  readonly errors?: readonly RushesError[]
  readonly files?: readonly ResultFile[]
  /** Whether small pictures are part of the answer. */
  readonly showsPictures?: boolean
}

/** The answer of a command that has printed nothing but errors. */
export const errorAnswer = ({ errors, warnings }: Pick<Answer, 'errors' | 'warnings'>): Answer => ({
  ...{ lines: [], structured: {} },
  ...(errors && { errors }),
  ...(warnings && { warnings }),
})

const MAX_ERRORS = 5
const MAX_PICTURES_BYTES = 1_000_000
const PICTURES: readonly string[] = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export async function resultOf(answer: Answer): Promise<CallToolResult> {
  const { lines, structured, warnings = [], errors = [], files = [], showsPictures = false } = answer
  const shown = errors.slice(0, MAX_ERRORS).map(errorInTools)
  const [error] = shown
  const text = [
    ...shown.map((each) => JSON.stringify({ error: each })),
    ...(errors.length > MAX_ERRORS ? [`and ${errors.length - MAX_ERRORS} more errors`] : []),
    ...lines,
    ...warnings.map((warning) => `warning: ${warning}`),
  ].join('\n')
  return {
    content: [
      { type: 'text', text: withoutControls(text) },
      ...files.map(({ path, bytes, content_type }) => ({
        type: 'resource_link' as const,
        uri: pathToFileURL(path).href,
        name: basename(path),
        mimeType: content_type,
        size: bytes,
      })),
      ...(showsPictures ? await picturesOf(files) : []),
    ],
    structuredContent: printableValue({ ...structured, warnings, ...(error && { error }) }) as Record<
      string,
      unknown
    >,
    isError: error !== undefined,
  }
}

/** The pictures that are under 1 MB together. */
async function picturesOf(files: readonly ResultFile[]): Promise<CallToolResult['content']> {
  const pictures: CallToolResult['content'] = []
  let left = MAX_PICTURES_BYTES
  for (const { path, bytes, content_type: mimeType } of files) {
    if (!PICTURES.includes(mimeType) || bytes >= left) continue
    left -= bytes
    const data = await readFile(path, 'base64').catch(() => undefined)
    if (data !== undefined) pictures.push({ type: 'image', data, mimeType })
  }
  return pictures
}

/** What an agent does next, by the code of the error. Other hints name commands and flags, for the user. */
const HINTS: Readonly<Record<string, string>> = {
  wait_timeout: 'Call wait_run with its id, or the same call again. Nothing is paid twice.',
  download_failed: 'Call download_run with its id. Do not create it again.',
  run_not_found: 'Check the id with list_runs.',
}

const errorInTools = (error: RushesError): ErrorJson =>
  errorJson(error.with({ message: printable(error.message), hint: HINTS[error.code] ?? error.hint }))

/** Names of fields that contain paths. */
const PATHS: readonly string[] = ['path', 'file', 'files']

/**
 * Removes control characters, since text from a service could otherwise control the user's terminal. Paths stay, so that
 * they name existing files.
 */
function printableValue(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return PATHS.includes(name) ? value : withoutControls(value)
  // Clients read the message with `JSON.parse`.
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map((each) => printableValue(each, name))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, printableValue(each, key)]))
}

/** Returns a path for display. As JSON if it contains invisible characters: without them it would name another file. */
export const shownPath = (path: string): string => (printable(path) === path ? path : printableJson(path))

/** What the session may still create. */
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
  readonly state: 'running' | 'downloading' | 'succeeded' | 'failed' | 'unknown'
  readonly status: string | null
  readonly kind: string | null
  readonly model: string | null
  readonly urls: readonly string[]
  readonly files: readonly ResultFile[]
  /** While the outputs are downloading. */
  readonly downloaded_bytes: number | null
  readonly total_bytes: number | null
  readonly request_id: string | null
  readonly error: ErrorJson | null
}

interface RunOptions {
  readonly requestId?: string | undefined
  /** Name of the tool that repeats a create without an id. */
  readonly creator?: string
  /** Whether an unfinished run is an error. */
  readonly mustBeFinished?: boolean
}

/** The run of a job, which may continue without the call: its line for the agent, and its values. */
function runOf(job: Job, { requestId, creator, mustBeFinished = false }: RunOptions = {}) {
  const line = job.objects.find(isObject) ?? {}
  const word = (value: unknown) => (typeof value === 'string' ? value : null)
  const id = job.id ?? word(line.id)
  const state = id === null ? undefined : job.states.get(id)
  // A run that continues is an answer.
  const error = job.errors.find(
    ({ code }) => mustBeFinished || (code !== 'wait_timeout' && code !== 'interrupted'),
  )
  const files: readonly ResultFile[] = Array.isArray(line.files)
    ? line.files.map(({ url: _, ...file }) => file)
    : []
  const isDownloading = state?.phase === 'succeeded' && !job.isDone && job.options.delivery !== undefined
  const phase = isDownloading ? 'downloading' : (state?.phase ?? 'running')
  const transfer = isDownloading && id !== null ? job.transfers.get(id) : undefined
  const run: RunResult = {
    id,
    state: id === null || error?.code === 'run_not_found' ? 'unknown' : phase,
    status: state?.status ?? word(line.status),
    kind: word(line.kind),
    model: word(line.model),
    urls: phase === 'succeeded' ? (state?.urls ?? []) : [],
    files,
    downloaded_bytes: transfer?.receivedBytes ?? null,
    total_bytes: transfer?.totalBytes ?? null,
    request_id: requestId ?? null,
    error: error === undefined ? null : errorInTools(error),
  }
  return { run, error, files, line: error === undefined ? lineOf(run, creator) : undefined }
}

function lineOf(run: RunResult, creator = ''): string {
  const { id, state, status, urls, files, request_id: requestId } = run
  if (id === null)
    return (
      `The service has not answered the create yet. Call ${creator} again with the same arguments and ` +
      `request_id "${requestId}" to get the run id; nothing is paid twice.`
    )
  if (state === 'downloading') {
    const [received, total] = [run.downloaded_bytes ?? 0, run.total_bytes]
    const amount = `${formatBytes(received)}${total === null ? '' : ` of ${formatBytes(total)}`}`
    return `${id} succeeded, and its output is still downloading, ${amount}; call wait_run again.`
  }
  if (state === 'running') return `${id} is still running (${status ?? 'no status yet'}).`
  const saved = files.map(
    ({ path, bytes, content_type }) => `${shownPath(path)} (${content_type}, ${formatBytes(bytes)})`,
  )
  const end = state === 'failed' && status !== null && status !== state ? `${state} (${status})` : state
  const outputs = saved.length > 0 ? saved : urls
  return `${id} ${end}${outputs.length === 0 ? '' : `: ${outputs.join(', ')}`}`
}

/** Answers with the runs of jobs. `lines` and `further`: added to it. */
export function runsAnswer(
  jobs: readonly Job[],
  options: RunOptions & { readonly lines?: readonly string[]; readonly further?: object } = {},
): Answer {
  const results = jobs.map((job) => runOf(job, options))
  const ids = results.flatMap(({ run, error }) =>
    run.state === 'running' && error === undefined ? [run.id] : [],
  )
  return {
    lines: [
      ...results.flatMap(({ line }) => line ?? []),
      ...(ids.length === 0 || ids.includes(null)
        ? []
        : [
            `Call wait_run with ${JSON.stringify({ ids })} to wait up to ${MAX_WAIT_MS / 1_000} s more. Waiting is free. ` +
              'Do not create it again.',
          ]),
      ...(options.lines ?? []),
    ],
    structured: { runs: results.map(({ run }) => run), ...options.further },
    warnings: jobs.flatMap(({ warnings }) => warnings),
    errors: results.flatMap(({ error }) => error ?? []),
    files: results.flatMap(({ files }) => files),
    showsPictures: true,
  }
}

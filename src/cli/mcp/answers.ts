/** Answers of the tools: a few lines for the agent, the same as JSON, links to files, and small pictures. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { RushesError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf } from '../../protocol/price.js'
import { printable, printableJson, withoutControls } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { CostLimit } from '../models/cost-limit.js'
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
  /** Default: the structured answer as JSON. */
  readonly lines?: readonly string[]
  readonly structured?: Readonly<Record<string, unknown>>
  readonly warnings?: readonly string[]
  readonly errors?: readonly RushesError[]
  readonly files?: readonly ResultFile[]
  /** Whether small pictures are part of the answer. */
  readonly showsPictures?: boolean
}

const MAX_ERRORS = 5
const MAX_PICTURES_BYTES = 1_000_000
const PICTURES: readonly string[] = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export async function resultOf(answer: Answer): Promise<CallToolResult> {
  const { structured, warnings = [], errors = [], files = [], showsPictures = false } = answer
  const { lines = structured === undefined ? [] : [printableJson(structured)] } = answer
  const shown = errors.slice(0, MAX_ERRORS).map(errorInTools)
  const [error] = shown
  const text = [
    ...shown.map((each) => JSON.stringify({ error: each })),
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
    structuredContent: {
      ...withoutControlsIn({ ...structured, warnings }),
      ...(error !== undefined && { error }),
    },
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
  download_failed: 'Call wait_run with its id. Do not create it again.',
  run_not_found: 'Check the id with list_runs.',
}

const errorInTools = (error: RushesError): ErrorJson =>
  errorJson(error.with({ message: printable(error.message), hint: HINTS[error.code] ?? error.hint }))

/** Text from a service could control the user's terminal. The messages of the SDK cannot have long integers. */
function withoutControlsIn(value: object): Record<string, unknown> {
  const entries = Object.entries(value).map(([key, each]) => [key, plainValue(each)])
  return Object.fromEntries(entries)
}

function plainValue(value: unknown): unknown {
  if (typeof value === 'string') return withoutControls(value)
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map(plainValue)
  return isObject(value) ? withoutControlsIn(value) : value
}

/** What the session may still create. */
export const leftJson = ({ left: { runs, millionths } }: CostLimit) => ({
  left_in_session: runs,
  estimate_left_in_session: millionths === undefined ? null : amountOf(millionths),
})

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

/** The run of a job, which may continue without the call, and its error. */
function runOf(job: Job, requestId: string | undefined) {
  const line = job.objects.find(isObject) ?? {}
  const word = (value: unknown) => (typeof value === 'string' ? value : null)
  const { state } = job
  const id = job.ids[0] ?? word(line.id)
  // A run that continues is an answer.
  const error = job.errors.find(({ code }) => code !== 'wait_timeout' && code !== 'interrupted')
  const isDownloading = state?.phase === 'succeeded' && !job.isDone && job.options.delivery !== undefined
  const phase = isDownloading ? 'downloading' : (state?.phase ?? 'running')
  const transfer = isDownloading ? job.transfer : undefined
  const run: RunResult = {
    id,
    state: id === null || error?.code === 'run_not_found' ? 'unknown' : phase,
    status: state?.status ?? word(line.status),
    kind: word(line.kind),
    model: word(line.model),
    urls: phase === 'succeeded' ? (state?.urls ?? []) : [],
    files: Array.isArray(line.files) ? line.files.map(({ url: _, ...file }) => file) : [],
    downloaded_bytes: transfer?.receivedBytes ?? null,
    total_bytes: transfer?.totalBytes ?? null,
    request_id: requestId ?? null,
    error: error === undefined ? null : errorInTools(error),
  }
  return { run, error }
}

function lineOf({ id, state, status, urls, files, ...run }: RunResult): string {
  if (id === null)
    return (
      'The service has not answered the create yet. Call the same tool again with the same arguments and ' +
      `request_id "${run.request_id}" to get the run id; nothing is paid twice.`
    )
  if (state === 'downloading') {
    const total = run.total_bytes === null ? '' : ` of ${formatBytes(run.total_bytes)}`
    const amount = `${formatBytes(run.downloaded_bytes ?? 0)}${total}`
    return `${id} succeeded, and its output is still downloading, ${amount}; call wait_run again.`
  }
  if (state === 'running')
    return (
      `${id} is still running (${status ?? 'no status yet'}). Call wait_run with {"ids":["${id}"]} to wait up to ` +
      `${MAX_WAIT_MS / 1_000} s more. Waiting is free. Do not create it again.`
    )
  const saved = files.map(
    ({ path, bytes, content_type }) => `${path} (${content_type}, ${formatBytes(bytes)})`,
  )
  const end = state === 'failed' && status !== null && status !== state ? `${state} (${status})` : state
  const outputs = (saved.length > 0 ? saved : urls).join(', ')
  return outputs === '' ? `${id} ${end}` : `${id} ${end}: ${outputs}`
}

/** Answers with the runs of jobs. `more`: values of the call. */
export function runsAnswer(jobs: readonly Job[], requestId?: string, more: object = {}): Answer {
  const results = jobs.map((job) => runOf(job, requestId))
  const runs = results.map(({ run }) => run)
  return {
    lines: runs.flatMap((run) => (run.error === null ? [lineOf(run)] : [])),
    structured: { runs, ...more },
    warnings: jobs.flatMap(({ warnings }) => warnings),
    errors: results.flatMap(({ error }) => error ?? []),
    files: runs.flatMap(({ files }) => files),
    showsPictures: true,
  }
}

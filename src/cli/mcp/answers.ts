/** Answers of the tools: the objects of `--json` as text and as data, links to files, and small pictures. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { RushesError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import { printable, printableJson, withoutControls } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { Run } from '../../runs/run.js'
import { type ErrorJson, errorJson } from '../terminal/output.js'
import { runJson } from '../terminal/run-json.js'
import type { Job } from './session.js'

/** A file that a call has written or found. */
export interface ResultFile {
  /** Absolute path. */
  readonly path: string
  readonly bytes: number
  readonly content_type: string
}

export interface Answer {
  /** What the agent should do next, one sentence a line. */
  readonly next?: readonly string[]
  readonly structured?: Readonly<Record<string, unknown>>
  readonly warnings?: readonly string[]
  readonly errors?: readonly RushesError[]
  readonly files?: readonly ResultFile[]
}

const MAX_ERRORS = 5
const MAX_PICTURES_BYTES = 1_000_000
const PICTURES: readonly string[] = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export async function resultOf(answer: Answer): Promise<CallToolResult> {
  const { next = [], structured, warnings = [], files = [] } = answer
  const errors = (answer.errors ?? []).slice(0, MAX_ERRORS).map(errorInTools)
  const [error] = errors
  const text = [
    ...errors.map((each) => JSON.stringify({ error: each })),
    ...next,
    ...(structured === undefined ? [] : [printableJson(structured)]),
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
      ...(await picturesOf(files)),
    ],
    // Some clients show only this to the agent.
    structuredContent: plainJson({
      ...(next.length > 0 && { next }),
      ...structured,
      warnings,
      ...(error !== undefined && { error }),
    }),
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
}

const errorInTools = (error: RushesError): ErrorJson =>
  errorJson(error.with({ message: printable(error.message), hint: HINTS[error.code] ?? error.hint }))

/** Text from a service could control the user's terminal. The messages of the SDK cannot have long integers. */
const plainJson = (value: object): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify(value, (_, each: unknown) => {
      if (typeof each === 'bigint') return String(each)
      return typeof each === 'string' ? withoutControls(each) : each
    }),
  )

export type Json = Readonly<Record<string, unknown>>

/** Answers with the objects that a command has printed. Without any, with its errors alone. */
export function answerWith(
  { objects, errors, warnings }: Job,
  of: (objects: readonly Json[]) => Json,
): Answer {
  const isPrinted = objects.length > 0 || errors.length === 0
  return { errors, warnings, ...(isPrinted && { structured: of(objects.filter(isObject)) }) }
}

/** Answers with the runs of jobs. `more`: values of the call. */
export function runsAnswer(jobs: readonly Job[], more: object = {}): Answer {
  const found = jobs.map((job) => ({ job, runs: runsOf(job) }))
  const runs = found.flatMap((each) => each.runs)
  return {
    next: found.flatMap(nextStep),
    structured: { runs, ...more },
    warnings: jobs.flatMap(({ warnings }) => warnings),
    errors: jobs.flatMap(({ errors }) => errors),
    files: runs.flatMap(({ files }) => files as readonly ResultFile[]),
  }
}

/**
 * The runs that the command has printed, else the one that it follows. Without the object of the service, which repeats
 * the input.
 */
function runsOf({ objects, run }: Job): readonly Json[] {
  const printed = objects.filter(isObject)
  const runs = printed.length === 0 && run !== undefined ? [unfinishedJson(run)] : printed
  return runs.map((each) => ({ ...each, service: null }))
}

const unfinishedJson = ({ id, known, state, finishedAt, elapsedMs }: Run): object =>
  runJson({ ...known, id, state, files: [], error: undefined, finishedAt, elapsedMs })

const NOT_ANSWERED =
  'The service has not answered yet. Call the same tool again with the same arguments, and with the request_id of this ' +
  'answer; nothing is paid twice.'

function nextStep({ job, runs }: { readonly job: Job; readonly runs: readonly Json[] }): readonly string[] {
  const [run] = runs
  const id = run?.id ?? job.follows
  if (id === undefined) return job.isDone ? [] : [NOT_ANSWERED]
  const { output = null, error = null, status = null } = run ?? {}
  const isSucceeded = output !== null
  if (job.isDone && (isSucceeded || error !== null || job.errors.length > 0)) return []
  const progress = isSucceeded
    ? `succeeded, and its outputs are still downloading${amountOfDownload(job)}; call wait_run again`
    : `is still running (${status ?? 'no status yet'}). Call wait_run`
  return [
    `${id} ${progress} with {"ids":["${id}"]} to wait up to 45 s more. Waiting is free. Do not create it again.`,
  ]
}

function amountOfDownload({ downloaded }: Job): string {
  if (downloaded === undefined) return ''
  const { receivedBytes, totalBytes } = downloaded
  return `, ${formatBytes(receivedBytes)}${totalBytes === undefined ? '' : ` of ${formatBytes(totalBytes)}`}`
}

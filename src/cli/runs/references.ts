/**
 * Reads the sources of media parameters, of flags, of `--input`, of tools and of manifests: a local file, which is checked
 * by its bytes and sent as a data: URL; `run:<id>`, an output of an earlier run; and `row:<name>`, one of another row. An
 * output is its URL while the host still serves it, else its file.
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Made, outputsOf } from '../../batch/lock/lock.js'
import type { RowReference, SentReference } from '../../batch/manifest/index.js'
import { tooLarge } from '../../client/create.js'
import type { ApiClient } from '../../client/index.js'
import { isServed, parseOutputUrl } from '../../download/output-request.js'
import { RushesError, usageError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { quoteWord } from '../../host/shell.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import type { JournalRun } from '../../journal/index.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import {
  type DownloadedFile,
  dataUrl,
  MediaSummary,
  type MediaType,
  mediaContentType,
  mediaProblem,
  sourceFormOf,
} from '../../protocol/media.js'
import {
  type MediaParameters,
  type MediaSource,
  mediaSources,
  withMedia,
} from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import type { RunState } from '../../protocol/run-state.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { linesOf, readPath, readStdin } from '../process/io.js'
import { plural } from '../terminal/format.js'
import { findRun, livesElsewhere } from './journal-rows.js'
import { resumeCommand } from './resume.js'

interface MediaFile {
  readonly bytes: Buffer
  readonly contentType: string
}

const SOURCES = 'Give a path, an http(s) URL, a data: URL or run:<id> for an output of an earlier run.'

interface ReadMediaOptions {
  readonly type: MediaType
  readonly signal: AbortSignal
  /** The path in messages. Default: the path. */
  readonly shown?: string
}

/** `isRegular`: only a regular file is read. Throws `usage`: a message that begins with the path. */
async function readMediaFile(
  path: string,
  { type, signal, shown = path }: ReadMediaOptions,
  isRegular = false,
): Promise<MediaFile> {
  const bytes = await readPath(path, {
    signal,
    shown,
    hint: SOURCES,
    check(found) {
      if (isRegular && !found.isFile()) throw usageError(`${shown} is not a regular file.`)
      if (found.size > MAX_BODY_BYTES) throw tooLarge(`${shown} has ${found.size} bytes`)
    },
  })
  return checkedFile(bytes, shown, type)
}

function checkedFile(bytes: Buffer, shown: string, type: MediaType): MediaFile {
  const contentType = mediaContentType(bytes, type)
  if (contentType !== undefined) return { bytes, contentType }
  throw usageError(`${shown} ${mediaProblem(bytes, type)}.`, 'The content of the file decides, not its name.')
}

/**
 * Returns what identifies a regular file, or why it cannot be sent: a text that begins with the path. Reading a pipe or
 * device may never end.
 */
export async function identifyMediaFile(
  path: string,
  options: ReadMediaOptions,
): Promise<MediaSummary | string> {
  try {
    const { bytes, contentType } = await readMediaFile(path, options, true)
    return new MediaSummary(sha256Of(bytes), bytes.byteLength, contentType)
  } catch (error) {
    if (error instanceof RushesError && error.code === 'usage') return error.message.replace(/\.$/, '')
    throw error
  }
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Returns the path of a local file. Throws for one that must not be read. */
export type FileOf = (path: string, parameter: string) => string

interface SourcesOptions {
  readonly fileOf?: FileOf | undefined
  readonly media: MediaParameters
  readonly signal: AbortSignal
}

/** Returns the input with the bytes of each local file in the parameters `names`. Rejects with `usage`. */
export async function readMediaSources(
  input: ModelInput,
  names: readonly string[],
  { media, signal, fileOf = (path) => path }: SourcesOptions,
): Promise<ModelInput> {
  const changes: MediaSource[] = []
  for (const source of mediaSources(input, names)) {
    const { parameter, value } = source
    if (typeof value !== 'string') continue
    const form = sourceFormOf(value)
    // `run:` is resolved later, when the service is known.
    if (form === 'url' || form === 'data' || form === 'run') continue
    if (form === 'invalid url')
      throw usageError(`${parameter}: "${shortened(value, 100)}" is not a valid URL.`)
    if (form === 'blank' || form === 'standard input')
      throw usageError(`${parameter} has an empty entry.`, SOURCES)
    const type = media.get(parameter) ?? 'file'
    const path = fileOf(value, parameter)
    const file = await naming(parameter, () => readMediaFile(path, { type, signal, shown: value }))
    changes.push({ ...source, value: dataUrl(file.bytes, file.contentType) })
  }
  return withMedia(input, changes)
}

/** Adds the name of the parameter to an error. */
async function naming<Result>(parameter: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof RushesError) || error.code !== 'usage') throw error
    throw usageError(`${parameter}: ${error.message}`, error.hint)
  }
}

/** Returns the input with the content of standard input, one file or one source per line, in the place of `-`. */
export async function withStdin(
  input: ModelInput,
  { parameter, entry }: MediaSource,
  media: MediaParameters,
  { stdin, interrupts }: Context,
): Promise<ModelInput> {
  const type = media.get(parameter) ?? 'file'
  const bytes = await readStdin(stdin, `the sources of ${parameter}`, interrupts.first)
  const isText = mediaContentType(bytes, type === 'file' ? 'image' : type) === undefined && !bytes.includes(0)
  const file = isText
    ? undefined
    : await naming(parameter, async () => checkedFile(bytes, 'Standard input', type))
  const sources = file ? [dataUrl(file.bytes, file.contentType)] : linesOf(bytes.toString('utf8'))
  const { [parameter]: list } = input
  if (entry !== undefined && Array.isArray(list))
    return { ...input, [parameter]: list.toSpliced(entry, 1, ...sources) }
  const [only = ''] = sources
  if (sources.length === 1) return { ...input, [parameter]: only }
  throw usageError(`${parameter} takes one source, and standard input has ${sources.length}.`)
}

interface OutputProbe {
  /** Fetch without the API key. */
  readonly fetch: Fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Timeout for the check of a URL. A slower host is treated as not having the output. */
const PROBE_MS = 10_000

/** Whether the host still serves the output. Rejects only with the signal's reason. */
async function isAvailable(
  text: string | undefined,
  { fetch, clock, signal }: OutputProbe,
): Promise<boolean> {
  const url = text === undefined ? undefined : parseOutputUrl(text)
  if (url === undefined) return false
  const timeoutError = new Error('the host took too long')
  const limit = { timeoutMs: PROBE_MS, reason: () => timeoutError, clock, signal }
  const nowMs = clock.now()
  try {
    return await withTimeout((either) => isServed({ fetch, url, signal: either, nowMs }), limit)
  } catch (error) {
    if (error === timeoutError) return false
    throw error
  }
}

interface OutputOnDisk {
  readonly path: string
  /** The path in messages. */
  readonly file: string
  /** The reference, as written. */
  readonly reference: string
  readonly sha256: string
  readonly content_type: string
}

/** Returns the data: URL of a file, or why the file cannot be used. Throws `usage` if it is too large. */
async function fileAsUrl(
  { path, file, reference, sha256, content_type }: OutputOnDisk,
  when = 'after it was downloaded',
): Promise<{ readonly url: string } | { readonly why: string }> {
  try {
    const { size } = await stat(path)
    if (size > MAX_BODY_BYTES)
      throw tooLarge(`${reference} (${file}) has ${size} bytes and must be sent with the request`)
    const bytes = await readFile(path)
    return sha256Of(bytes) === sha256
      ? { url: dataUrl(bytes, content_type) }
      : { why: `${file} was changed ${when}` }
  } catch (error) {
    if (isSystemError(error)) return { why: describeError(error, file) }
    throw error
  }
}

const RUN_OUTPUT = /^run:(.+?)(?:#(\d+))?$/s

/** The parts of a `Connection` that find an output. */
interface Source {
  readonly client: ApiClient
  /** Fetch without the API key. */
  readonly fetch: Fetch
}

/**
 * Returns the input with `run:` references in its media parameters replaced by URLs, or by the downloaded file where the
 * service no longer has the output. Sends a status request for each reference, since the URL in the journal may have
 * expired. Throws `usage` if the run was not created on this machine and at this address, has not succeeded, or has no
 * output with this number.
 */
export async function withRunOutputs(
  ctx: Context,
  service: Source,
  input: ModelInput,
  media: readonly string[],
): Promise<ModelInput> {
  const changes: MediaSource[] = []
  for (const source of mediaSources(input, media))
    if (typeof source.value === 'string' && sourceFormOf(source.value) === 'run')
      changes.push({ ...source, value: await runOutput(ctx, service, source.value) })
  return changes.length === 0 ? input : withMedia(input, changes)
}

async function runOutput(ctx: Context, { client, fetch }: Source, reference: string): Promise<string> {
  const [, name = '', number = '1'] = RUN_OUTPUT.exec(reference) ?? []
  const refused = (why: string, hint?: string) =>
    usageError(`${shortened(reference)}: ${why}. Nothing was created.`, hint)
  const journal = await ctx.journal()
  const run = await findRun(ctx, journal, name)
  if (run?.id === undefined)
    throw refused(
      'this run was not created on this machine',
      '`rushes list` shows the runs of this machine. The URL or the file of the output works too.',
    )
  if (run.address !== (await ctx.address())) {
    const error = await livesElsewhere(ctx, run.id, run)
    throw error.with({ hint: `${error.hint} Or give the URL or the file of the output.` })
  }
  const urls = await urlsOf(ctx, client, run, run.id, refused)
  const at = Number(number) - 1
  const url = urls[at]
  if (url === undefined) throw refused(`this run has ${plural(urls.length, 'output')}, counted from 1`)
  const { clock, interrupts } = ctx
  if (await isAvailable(url, { fetch, clock, signal: interrupts.first })) return url
  let why = 'it was not downloaded'
  for (const file of filesOfOutput(journal.filesOf(run), [url, run.urls[at]], urls.length)) {
    const onDisk = await fileAsUrl({ ...file, file: file.path, reference })
    if ('url' in onDisk) return onDisk.url
    ;({ why } = onDisk)
  }
  throw refused(
    `the service does not have this output any more, and ${why}`,
    'Give another URL or file, or create the run again.',
  )
}

/** The URLs of the run's outputs; those of the journal if the service no longer knows the run. */
async function urlsOf(
  { interrupts, globals }: Context,
  client: ApiClient,
  run: JournalRun,
  id: string,
  refused: (why: string, hint?: string) => RushesError,
): Promise<readonly string[]> {
  const state = await client.get(id, interrupts.first).catch((error: unknown) => {
    if (error instanceof RushesError && error.code === 'run_not_found' && run.urls.length > 0)
      return undefined
    throw error
  })
  if (state === undefined) return run.urls
  if (state.phase !== 'succeeded') {
    const wait = `Wait for it first with \`${resumeCommand(globals, 'wait', [id])}\`.`
    throw refused(
      `this run has not succeeded (${state.status})`,
      state.phase === 'running' ? wait : undefined,
    )
  }
  if (state.withoutUrls !== undefined) throw refused(`this run ended without a file: ${state.withoutUrls}`)
  return state.urls
}

/**
 * Returns the downloads of one output, newest first. `urls`: its links. The only output of a run has all files of the
 * run; of several, a file whose link is not known could be another output.
 */
const filesOfOutput = (
  files: readonly DownloadedFile[],
  urls: readonly (string | undefined)[],
  outputs: number,
): readonly DownloadedFile[] => files.filter((file) => outputs === 1 || urls.includes(file.url)).reverse()

export interface RowOutputsOptions extends OutputProbe {
  readonly client: Pick<ApiClient, 'get'>
  /** Address of the service. */
  readonly address: string
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  madeOf(name: string): Made | undefined
}

/** Finds the outputs of other rows. Checks a URL just before it is sent, since it may expire while the batch runs. */
export class RowOutputs {
  readonly #options: RowOutputsOptions
  readonly #known = new Map<string, readonly string[]>()
  readonly #requests = new Map<string, Promise<readonly string[]>>()

  constructor(options: RowOutputsOptions) {
    this.#options = options
  }

  /** Remembers the URLs of a run that this batch has followed. */
  learn({ id, urls }: RunState): void {
    this.#known.set(id, urls)
  }

  /**
   * Returns the URL of an output. Rejects with `usage` if neither the service nor the disk has the output, or with the
   * signal's reason.
   */
  async urlOf({ text, source, output }: Pick<RowReference, 'text' | 'source' | 'output'>): Promise<string> {
    const { madeOf, folder } = this.#options
    const made = madeOf(source)
    const found = outputsOf(made)[output - 1]
    if (made === undefined || found === undefined) throw new Error('a row begins when its sources are there')
    const served = await this.#servedUrl(made, output - 1)
    if (served !== undefined) return served
    const { file, sha256, content_type } = found
    const onDisk = await fileAsUrl({
      path: resolve(folder, file),
      file,
      reference: text,
      sha256,
      content_type,
    })
    if ('url' in onDisk) return onDisk.url
    throw usageError(
      `${text}: the service does not have this output any more, and ${onDisk.why}.`,
      `Create it again with --only ${quoteWord(source)} --force.`,
    )
  }

  async #servedUrl({ run, service }: Made, at: number): Promise<string | undefined> {
    if (service !== this.#options.address) return undefined
    const first = this.#known.get(run)?.[at]
    if (await isAvailable(first, this.#options)) return first
    // A status request renews URLs that have expired. Rows that use one run share it.
    const request = this.#requests.get(run) ?? this.#renew(run)
    this.#requests.set(run, request)
    const fresh = (await request)[at]
    return fresh !== first && (await isAvailable(fresh, this.#options)) ? fresh : undefined
  }

  /** A run that the service does not know is not asked for again. */
  async #renew(run: string): Promise<readonly string[]> {
    const { client, signal } = this.#options
    let isGone = false
    try {
      const state = await client.get(run, signal)
      this.learn(state)
      return state.urls
    } catch (error) {
      signal.throwIfAborted()
      isGone = error instanceof RushesError && error.code === 'run_not_found'
      return []
    } finally {
      if (!isGone) this.#requests.delete(run)
    }
  }
}

/** Returns the data: URL of a local file. Throws `usage` if the file has changed since the plan was made. */
export async function fileUrl(
  { path, summary, place }: Extract<SentReference, { from: 'file' }>,
  name: string,
): Promise<string> {
  const reference = `${place.parameter} of ${name}`
  const { sha256, content_type } = summary
  const onDisk = { path, file: path, reference, sha256, content_type }
  const found = await fileAsUrl(onDisk, 'while the batch was running')
  if ('url' in found) return found.url
  throw usageError(`${reference}: ${found.why}.`, 'Run the same command again.')
}

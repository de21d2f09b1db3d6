/**
 * Finds outputs that are used as sources: `run:<id>`, an output of an earlier run, and `row:<name>`, one of another row of a
 * manifest. An output is its URL while the host still serves it, else its file.
 */
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
import { type DownloadedFile, dataUrl, sourceFormOf } from '../../protocol/media.js'
import { type MediaSource, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import type { RunState } from '../../protocol/run-state.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { plural } from '../terminal/format.js'
import { findRun, livesElsewhere } from './journal-rows.js'
import { sha256Of } from './media-sources.js'
import { resumeCommand } from './resume.js'

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
  /** The links of each run that the service gave last. Empty for a run that it does not know. */
  readonly #links = new Map<string, Promise<readonly string[]>>()

  constructor(options: RowOutputsOptions) {
    this.#options = options
  }

  /** Remembers the URLs of a run that this batch has followed. */
  learn({ id, urls }: RunState): void {
    this.#links.set(id, Promise.resolve(urls))
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
    const links = this.#links.get(run)
    const known = await links
    if (known?.length === 0) return undefined
    if (await isAvailable(known?.[at], this.#options)) return known?.[at]
    // A status request renews links that have expired. Rows that use one run share it.
    if (this.#links.get(run) === links) this.#links.set(run, this.#renew(run))
    const fresh = (await this.#links.get(run))?.[at]
    return fresh !== known?.[at] && (await isAvailable(fresh, this.#options)) ? fresh : undefined
  }

  async #renew(run: string): Promise<readonly string[]> {
    const { client, signal } = this.#options
    try {
      return (await client.get(run, signal)).urls
    } catch (error) {
      signal.throwIfAborted()
      // Only a run that the service does not know is not asked for again.
      if (!(error instanceof RushesError && error.code === 'run_not_found')) this.#links.delete(run)
      return []
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

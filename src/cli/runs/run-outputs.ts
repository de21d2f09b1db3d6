/**
 * Finds outputs that are used as sources: `run:<id>`, an output of an earlier run, and `row:<name>`, one of another row of a
 * manifest. An output is its URL while the host still serves it, else its file.
 */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Made, outputsOf } from '../../batch/lock/lock.js'
import type { RowReference, SentReference } from '../../batch/manifest/entry.js'
import { tooLarge } from '../../client/create.js'
import type { ApiClient } from '../../client/index.js'
import { isServed, parseOutputUrl } from '../../download/output-request.js'
import { RushesError, usageError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { quoteWord } from '../../host/shell.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl, sourceFormOf } from '../../protocol/media.js'
import { type MediaSource, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { globOf, resumeCommand } from '../settings/globals.js'
import { plural } from '../terminal/format.js'
import { findRun, livesElsewhere } from './journal-rows.js'
import { sha256Of } from './media-sources.js'

/** An output that cannot be sent, and the reason. */
interface Unusable {
  readonly why: string
}

interface SourceFile {
  readonly path: string
  /** The path in messages. Default: the path. */
  readonly shown?: string
  /** What it is used for, in messages. */
  readonly reference: string
  readonly sha256: string
  readonly content_type: string
}

/** Returns the data: URL of a file, or why the file cannot be used. Throws `usage` if it is too large. */
async function fileAsUrl(
  { path, shown = path, reference, sha256, content_type }: SourceFile,
  when = 'after it was downloaded',
): Promise<string | Unusable> {
  try {
    const { size } = await stat(path)
    if (size > MAX_BODY_BYTES)
      throw tooLarge(`${reference} (${shown}) has ${size} bytes and must be sent with the request`)
    const bytes = await readFile(path)
    if (sha256Of(bytes) !== sha256) return { why: `${shown} was changed ${when}` }
    return dataUrl(bytes, content_type)
  } catch (error) {
    if (isSystemError(error)) return { why: describeError(error, shown) }
    throw error
  }
}

/** Returns the data: URL of a local file. Throws `usage` if the file has changed since the plan was made. */
export async function fileUrl(
  { path, summary, place }: Extract<SentReference, { from: 'file' }>,
  name: string,
): Promise<string> {
  const reference = `${place.parameter} of ${name}`
  const found = await fileAsUrl({ path, reference, ...summary }, 'while the batch was running')
  if (typeof found === 'string') return found
  throw usageError(`${reference}: ${found.why}.`, 'Run the same command again.')
}

export interface OutputParts {
  readonly client: Pick<ApiClient, 'get'>
  /** Fetch without the API key. */
  readonly fetch: Fetch
  /** Address of the service. */
  readonly address: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

interface Output {
  /** Undefined for a run of another service. */
  readonly run: string | undefined
  /** Index among the outputs of the run. */
  readonly at: number
  /** Its downloads, the one to use first. */
  readonly files: readonly SourceFile[]
}

/** Timeout for the check of a URL. A slower host is treated as not having the output. */
const PROBE_MS = 10_000

const RUN_OUTPUT = /^run:(.+?)(?:#(\d+))?$/s

/** Finds the outputs of runs at one service. Checks a URL just before it is sent, since it may expire while a batch runs. */
export class OutputUrls {
  readonly #parts: OutputParts
  /** The last known links of each run. Empty for a run that the service does not know. */
  readonly #links = new Map<string, Promise<readonly string[]>>()

  constructor(parts: OutputParts) {
    this.#parts = parts
  }

  /** Remembers the links of a run. */
  learn(run: string, urls: readonly string[]): void {
    this.#links.set(run, Promise.resolve(urls))
  }

  /** Returns the URL of an output of another row. Rejects with `usage` if it is nowhere, or with the signal's reason. */
  async ofRow(
    { text, source, output }: RowReference,
    made: Made | undefined,
    folder: string,
  ): Promise<string> {
    const at = output - 1
    const found = outputsOf(made)[at]
    if (made === undefined || found === undefined) throw new Error('a row begins when its sources are there')
    const run = made.service === this.#parts.address ? made.run : undefined
    const file = { ...found, path: resolve(folder, found.file), shown: found.file, reference: text }
    const url = await this.#urlOf({ run, at, files: [file] })
    if (typeof url === 'string') return url
    throw usageError(
      `${text}: ${url.why}.`,
      `Create it again with --only ${quoteWord(globOf(source))} --force.`,
    )
  }

  /**
   * Returns the input with `run:` references in its media parameters replaced. Throws `usage` if the run was not created on
   * this machine and at this address, has not succeeded, or has no output with this number.
   */
  async ofRuns(ctx: Context, input: ModelInput, media: readonly string[]): Promise<ModelInput> {
    const changes: MediaSource[] = []
    for (const source of mediaSources(input, media)) {
      const { value } = source
      if (typeof value === 'string' && sourceFormOf(value) === 'run')
        changes.push({ ...source, value: await this.#ofRun(ctx, value) })
    }
    return changes.length === 0 ? input : withMedia(input, changes)
  }

  async #ofRun(ctx: Context, reference: string): Promise<string> {
    const [, name = '', number = '1'] = RUN_OUTPUT.exec(reference) ?? []
    const refused = (why: string, hint?: string) =>
      usageError(`${shortened(reference)}: ${why}. Nothing was created.`, hint)
    const journal = await ctx.journal()
    const row = await findRun(ctx, journal, name)
    const run = row?.id
    if (row === undefined || run === undefined)
      throw refused(
        'this run was not created on this machine',
        '`rushes list` shows the runs of this machine. The URL or the file of the output works too.',
      )
    if (row.address !== this.#parts.address) {
      const error = await livesElsewhere(ctx, run, row)
      throw error.with({ next: 'Or give the URL or the file of the output.' })
    }
    let { urls } = row
    if (urls.length === 0) {
      const state = await this.#parts.client.get(run, this.#parts.signal)
      const wait = `Wait for it first with \`${resumeCommand(ctx.globals, 'wait', [run])}\`.`
      if (state.phase !== 'succeeded')
        throw refused(
          `this run has not succeeded (${state.status})`,
          state.phase === 'running' ? wait : undefined,
        )
      if (state.withoutUrls !== undefined)
        throw refused(`this run ended without a file: ${state.withoutUrls}`)
      urls = state.urls
    }
    const at = Number(number) - 1
    if (urls[at] === undefined) throw refused(`this run has ${plural(urls.length, 'output')}, counted from 1`)
    if (!this.#links.has(run)) this.learn(run, urls)
    // The only output of a run has all its files; of several, a file whose link is not known could be another output.
    const files = journal.filesOf(row).filter(({ url }) => urls.length === 1 || url === urls[at])
    const url = await this.#urlOf({ run, at, files: files.reverse().map((file) => ({ ...file, reference })) })
    if (typeof url === 'string') return url
    throw refused(url.why, 'Give another URL or file, or create the run again.')
  }

  /**
   * Returns a link that answers, else a file as a data: URL. Throws the service's error if it cannot be asked and no file is
   * there.
   */
  async #urlOf({ run, at, files }: Output): Promise<string | Unusable> {
    let failure: RushesError | undefined
    try {
      const url = run === undefined ? undefined : await this.#servedUrl(run, at)
      if (url !== undefined) return url
    } catch (error) {
      this.#parts.signal.throwIfAborted()
      if (!(error instanceof RushesError)) throw error
      failure = error
    }
    let why = 'it was not downloaded'
    for (const file of files) {
      const found = await fileAsUrl(file)
      if (typeof found === 'string') return found
      ;({ why } = found)
    }
    if (failure !== undefined) throw failure
    return { why: `the service does not have this output any more, and ${why}` }
  }

  /** Throws the service's error. */
  async #servedUrl(run: string, at: number): Promise<string | undefined> {
    const links = this.#links.get(run)
    const known = await links
    if (known?.length === 0) return undefined
    if (await this.#isServed(known?.[at])) return known?.[at]
    // A status request renews links that have expired. Rows that use one run share it.
    if (this.#links.get(run) === links) this.#links.set(run, this.#renew(run))
    const fresh = (await this.#links.get(run))?.[at]
    return fresh !== known?.[at] && (await this.#isServed(fresh)) ? fresh : undefined
  }

  async #renew(run: string): Promise<readonly string[]> {
    const { client, signal } = this.#parts
    try {
      return (await client.get(run, signal)).urls
    } catch (error) {
      // Only a run that the service does not know is not asked for again.
      if (error instanceof RushesError && error.code === 'run_not_found') return []
      this.#links.delete(run)
      throw error
    }
  }

  /** Whether the host still serves the output. Rejects only with the signal's reason. */
  async #isServed(text: string | undefined): Promise<boolean> {
    const { fetch, clock, signal } = this.#parts
    const url = text === undefined ? undefined : parseOutputUrl(text)
    if (url === undefined) return false
    const timeoutError = new Error('the host took too long')
    const limit = { timeoutMs: PROBE_MS, reason: () => timeoutError, clock, signal }
    try {
      return await withTimeout((either) => isServed({ fetch, url, signal: either }), limit)
    } catch (error) {
      if (error === timeoutError) return false
      throw error
    }
  }
}

/**
 * Brings outputs home: side by side, each to a temporary name, checked, and renamed when it is whole. A file under its
 * final name is complete. One that fails takes no other with it. Nothing but a plain GET is sent to an output's host:
 * the `fetch` that is given in must add no key.
 *
 * One that was interrupted goes on where it stopped, in the next try as in the next command, if the host says that the file
 * is still the same.
 *
 * Limits: a host that declares no length, and closes the connection properly, is believed; so is one that calls another
 * file by the same strong ETag or, having none, by the same date. Hosts give no checksum, so what the disk itself has
 * lost or changed of a part is not seen.
 */
import type { Writable } from 'node:stream'
import { messageOf, RushesError } from '../errors.js'
import { type Delivery, type DownloadedFile, deliverToFile, deliverToStream } from './deliver-output.js'
import { createProgress, type Progress } from './download-progress.js'
import { havingOf } from './earlier-files.js'
import type { Means, Retrying, Source } from './fetch-output.js'
import { failed } from './file-errors.js'
import { createNamer, type Namer, type Subject } from './file-names.js'
import { createListing } from './part-claim.js'
import { createSlots } from './semaphore.js'
import { StreamFailed } from './stdout.js'
import type { Target } from './target.js'

export type { DownloadedFile } from './deliver-output.js'
export type { Progress } from './download-progress.js'
export type { Means, Retrying } from './fetch-output.js'
export { createNamer, type Known, knownPaths, type Namer, type Subject } from './file-names.js'
export { type Obstacle, obstacleAt } from './move-into-place.js'
export { safeName } from './safe-name.js'
export { parseTarget, type Target } from './target.js'

/** At once, over all calls of one downloader: more would share the same line, and annoy the host. */
const MOST_AT_ONCE = 4

/** `url` is http(s); anything else is refused. */
export interface Output extends Subject, Source {}

export type DownloadResult =
  | ({ readonly ok: true } & Delivery)
  | { readonly ok: false; readonly error: RushesError }

export interface DownloadOptions {
  readonly target: Target
  /** Shared by the calls of one command, so that their names and `{index}` go on from each other. */
  readonly namer?: Namer | undefined
  readonly overwrite?: boolean | undefined
  /** Files of these outputs that an earlier command brought home, with absolute paths: one that is still there is done. */
  readonly have?: readonly DownloadedFile[] | undefined
  /** A file is whole and about to get its name; what it rejects with ends that download. */
  beforePlace?(file: DownloadedFile, output: Output): Promise<void>
  /** Takes the bytes when the target is `stdout`; stays open. */
  readonly stdout?: Writable | undefined
  readonly signal?: AbortSignal | undefined
  /** Called for every chunk. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Called as each output is in place or given up, in the order in which that happens. */
  readonly onSettled?: ((result: DownloadResult, output: Output) => void) | undefined
  readonly onRetry?: ((retrying: Retrying, output: Output) => void) | undefined
}

export interface Downloader {
  /**
   * One result per output, in their order. All outputs of a run belong in one call. Rejects only with the signal's
   * reason, when what has arrived was kept or removed, or with the error of `stdout` (such as EPIPE).
   */
  download(outputs: readonly Output[], options: DownloadOptions): Promise<readonly DownloadResult[]>
}

export function createDownloader(means: Means): Downloader {
  const slots = createSlots(MOST_AT_ONCE)
  return {
    async download(outputs, options) {
      const { target, namer = createNamer(target), signal, onSettled, onRetry } = options
      const names = namer.name(outputs)
      const have = havingOf(options.have ?? [])
      const list = createListing()
      const createMeter = createProgress(outputs.length, options.onProgress)

      const downloads = outputs.map(async (output, at) => {
        const meter = createMeter()
        const job = {
          source: output,
          runId: output.runId,
          kind: output.kind,
          position: outputs.slice(0, at).filter(({ runId }) => runId === output.runId).length,
          name: names[at] ?? '',
          overwrite: options.overwrite ?? false,
          have,
          list,
          beforePlace: (file: DownloadedFile) => options.beforePlace?.(file, output),
          meter,
          signal,
          onRetry: (retrying: Retrying) => onRetry?.(retrying, output),
        }
        const deliver = (): Promise<Delivery> => {
          if (target.kind !== 'stdout') return deliverToFile(means, job)
          return deliverToStream(means, job, theStream(options, outputs.length))
        }
        const result = await slots.use(() => settle(deliver, output, signal))
        meter.end()
        onSettled?.(result, output)
        return result
      })
      // When one is aborted all are: each has cleaned up after itself before that is passed on.
      await Promise.allSettled(downloads)
      return Promise.all(downloads)
    },
  }
}

function theStream({ stdout }: DownloadOptions, outputs: number): Writable {
  if (stdout === undefined) throw new TypeError('the target is stdout, and no stream was given')
  if (outputs > 1) throw failed(`there are ${outputs} outputs, and standard output takes one`)
  return stdout
}

async function settle(
  deliver: () => Promise<Delivery>,
  output: Output,
  signal: AbortSignal | undefined,
): Promise<DownloadResult> {
  try {
    return { ok: true, ...(await deliver()) }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof StreamFailed) throw error.cause
    return { ok: false, error: withRun(error, output.runId) }
  }
}

/** Every failure names its run, and says that it is paid for: how to fetch it again is the caller's to say. */
function withRun(error: unknown, runId: string): RushesError {
  if (!(error instanceof RushesError))
    return new RushesError('internal', messageOf(error), { cause: error, runId })
  return error.with({
    hint: [error.hint, 'The run has succeeded and is paid for.'].filter(Boolean).join(' '),
    runId,
  })
}

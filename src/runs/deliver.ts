/** Downloads the outputs of a run that has succeeded. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ApiClient } from '../client/index.js'
import type {
  Destination,
  DownloadedFile,
  Downloader,
  DownloadOptions,
  RunOutput,
} from '../download/index.js'
import type { RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { asRushesError, Interruption, interrupted } from '../host/interrupts.js'
import type { RunState } from '../protocol/run-state.js'

export interface DeliverOptions
  extends Pick<DownloadOptions, 'target' | 'namer' | 'earlier' | 'stdout' | 'onProgress'> {
  readonly client: Pick<ApiClient, 'get'>
  readonly clock: Clock
  readonly downloader: Downloader
  readonly state: RunState
  /** Kind and name for the file names. */
  readonly run: Pick<RunOutput, 'kind' | 'name'>
  readonly signal: AbortSignal
  /** Whether the output with this index may replace an existing file. */
  mayReplace(index: number): boolean
  /**
   * Called with each complete file before it gets its final name. `index`: of the output. May return another final path.
   * A rejection fails the output.
   */
  beforeMove(file: DownloadedFile, index: number): Promise<Destination | undefined>
}

interface DeliveryErrors {
  readonly errors: readonly RushesError[]
  /** Reason that stopped the whole download, such as an `Interruption` or a closed standard output. */
  readonly thrown: unknown
}

interface Delivered extends DeliveryErrors {
  /** Complete files in the order of the outputs. After an interruption, in the order in which they were completed. */
  readonly files: readonly DownloadedFile[]
  readonly warnings: readonly string[]
}

/** Returns the error for outputs that were not downloaded. `hint`: how to download them later. */
export function deliveryError(
  { errors, thrown }: DeliveryErrors,
  runId: string,
  hint: string,
): RushesError | undefined {
  if (thrown instanceof Interruption)
    return interrupted(thrown, 'The run succeeded, but its download was interrupted.', hint, runId)
  if (thrown !== undefined) return asRushesError(thrown).with({ runId })
  const [first, ...others] = errors
  const more = others.length === 1 ? 'output' : 'outputs'
  return first?.with({
    message: `${first.message}${others.length === 0 ? '' : ` ${others.length} more ${more} of this run failed.`}`,
    hint: [first.hint, hint].filter(Boolean).join(' '),
    runId,
  })
}

/** Downloads all outputs of the run. Never rejects. */
export async function deliver(options: DeliverOptions): Promise<Delivered> {
  const { client, clock, downloader, state, run, signal, mayReplace, beforeMove, ...given } = options
  const links = createLinks(state, clock, () => client.get(state.id, signal))
  const outputs = state.urls.map(
    (_, index): RunOutput => ({
      // Read when the download of the output starts: other outputs may have renewed the links by then.
      get url() {
        return links.urlOf(index)
      },
      runId: state.id,
      ...run,
      freshUrl: () => links.freshUrlOf(index),
    }),
  )
  const settled: DownloadedFile[] = []
  try {
    const results = await downloader.download(outputs, {
      ...given,
      signal,
      overwrite: (output) => mayReplace(outputs.indexOf(output)),
      beforeMove: (file, output) => beforeMove(file, outputs.indexOf(output)),
      onSettled: (result) => void (result.ok && settled.push(result.file)),
    })
    return {
      files: results.flatMap((result) => (result.ok ? [result.file] : [])),
      errors: results.flatMap((result) => (result.ok ? [] : [result.error])),
      warnings: results.flatMap((result) => (result.ok ? result.warnings : [])),
      thrown: undefined,
    }
  } catch (thrown) {
    return { files: settled, errors: [], warnings: [], thrown }
  }
}

/** Answers of the service are used for outputs whose links expire within this time: they expire together. */
const MAX_ANSWER_AGE_MS = 1_000

/** The links of a run's outputs. One status request renews all of them, and each may expire again. */
function createLinks({ urls: first }: RunState, clock: Clock, fetchState: () => Promise<RunState>) {
  let urls = first
  let answeredAtMs = Number.NEGATIVE_INFINITY
  let request: Promise<void> | undefined
  const used = [...first]

  async function renew(): Promise<void> {
    try {
      ;({ urls } = await fetchState())
      answeredAtMs = clock.monotonic()
    } finally {
      request = undefined
    }
  }

  function urlOf(index: number): string {
    used[index] = urls[index] ?? first[index] ?? ''
    return used[index]
  }

  return {
    urlOf,
    async freshUrlOf(index: number): Promise<string | undefined> {
      const isFresh = urls[index] !== used[index] && clock.monotonic() - answeredAtMs < MAX_ANSWER_AGE_MS
      if (!isFresh) {
        request ??= renew()
        await request
      }
      return urls[index] === undefined ? undefined : urlOf(index)
    },
  }
}

/** Each commit waits for the disk several times: one commit per file would double the time for 200 small files. */
const COMMIT_PAUSE_MS = 50

/**
 * Returns a function that resolves when the file is recorded. The first file is recorded at once, later ones together
 * every 50 ms.
 */
export function inSharedCommits(record: (files: readonly DownloadedFile[]) => void) {
  const pending: DownloadedFile[] = []
  let next: Promise<void> | undefined
  let earliestMs = 0
  return (file: DownloadedFile): Promise<void> => {
    pending.push(file)
    next ??= pause(Math.max(0, earliestMs - performance.now())).then(() => {
      next = undefined
      earliestMs = performance.now() + COMMIT_PAUSE_MS
      record(pending.splice(0))
    })
    return next
  }
}

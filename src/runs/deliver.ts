/** Downloads the outputs of a run that has succeeded, and records each file before it gets its name. */
import { resolve } from 'node:path'
import type { Downloader, DownloadOptions, RunOutput } from '../download/index.js'
import type { RushesError } from '../errors.js'
import { asRushesError, Interruption, interrupted } from '../host/interrupts.js'
import type { Destination, DownloadedFile } from '../protocol/media.js'
import type { RunState } from '../protocol/run-state.js'
import type { Delivery, RunsSession } from './run.js'

export interface DeliverOptions
  extends Pick<DownloadOptions, 'target' | 'earlier' | 'overwrite' | 'stdout' | 'onProgress'> {
  readonly downloader: Downloader
  /** Kind and name for the file names. */
  readonly run: Pick<RunOutput, 'kind' | 'name'>
  /** Number of its row in the journal, if it is known. */
  readonly row: number | undefined
  /** How to download the outputs later. */
  readonly hint: string
  /** Returns the names of the outputs from this index on. A rejection fails the delivery. */
  namesFor(urls: readonly string[], from: number): Promise<readonly string[] | undefined>
  /** Returns another final path for a complete file. A rejection fails the output. */
  destinationOf?(file: DownloadedFile, index: number): Promise<Destination | undefined>
}

/** Downloads all outputs of the run. Never rejects. */
export async function deliver(
  { client, clock, journal, address, interrupts }: RunsSession,
  state: RunState,
  options: DeliverOptions,
): Promise<Delivery> {
  const { downloader, run, row, hint, namesFor, destinationOf, ...given } = options
  const { id } = state
  const { first: signal } = interrupts
  const links = createLinks(state, clock, () => client.get(id, signal))
  const settled: DownloadedFile[] = []
  const warnings: string[] = []
  const errors: RushesError[] = []
  const known = journal?.tryRead(() => {
    const found = journal.find(address, id)
    return found === undefined ? [] : journal.filesOf(found)
  })
  try {
    const files: DownloadedFile[] = []
    // Renewed links may be more than those before.
    for (let from = 0; from < links.urls().length && errors.length === 0; ) {
      const names = await namesFor(links.urls(), from)
      const start = from
      const outputs = links.urls().map(
        (_, index): RunOutput => ({
          // Read when the download of the output starts: other outputs may have renewed the links by then.
          get url() {
            return links.urlOf(index)
          },
          runId: id,
          ...run,
          freshUrl: () => links.freshUrlOf(index),
        }),
      )
      from = outputs.length
      const indexOf = (output: RunOutput) => outputs.indexOf(output)
      const results = await downloader.download(outputs.slice(start), {
        ...given,
        earlier: [...(given.earlier ?? []), ...(known ?? [])],
        names,
        signal,
        async beforeMove(file, output) {
          const to = await destinationOf?.(file, indexOf(output))
          // Bytes written to standard output have no file.
          if (given.target.kind !== 'stdout')
            journal?.files(address, id, [{ ...file, path: resolve(to?.path ?? file.path) }], row)
          return to
        },
        onSettled: (result) => void (result.ok && settled.push(result.file)),
      })
      for (const result of results) {
        if (!result.ok) errors.push(result.error)
        else {
          files.push(result.file)
          warnings.push(...result.warnings)
        }
      }
    }
    return { files, warnings, error: deliveryError(errors, hint, id) }
  } catch (thrown) {
    const error =
      thrown instanceof Interruption
        ? interrupted(thrown, 'The run succeeded, but its download was interrupted.', hint, id)
        : asRushesError(thrown).with({ runId: id })
    return { files: settled, warnings, error }
  }
}

/** Returns one error for the outputs that were not downloaded. `hint`: how to download them later. */
export function deliveryError(
  [first, ...others]: readonly RushesError[],
  hint: string,
  runId: string,
): RushesError | undefined {
  const more = others.length === 1 ? 'output' : 'outputs'
  return first?.with({
    message: `${first.message}${others.length === 0 ? '' : ` ${others.length} more ${more} of this run failed.`}`,
    hint: [first.hint, hint].filter(Boolean).join(' '),
    runId,
  })
}

/** Answers of the service are used for outputs whose links expire within this time: they expire together. */
const MAX_ANSWER_AGE_MS = 1_000

/** The links of a run's outputs. One status request renews all of them, and each may expire again. */
function createLinks(
  { urls: first }: RunState,
  clock: RunsSession['clock'],
  fetchState: () => Promise<RunState>,
) {
  let urls = first
  let answeredAtMs = Number.NEGATIVE_INFINITY
  let request: Promise<void> | undefined
  const used = [...first]

  async function renew(): Promise<void> {
    try {
      const fresh = await fetchState()
      // A service that withholds the links has not taken back the outputs.
      if (fresh.urls.length > 0) urls = fresh.urls
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
    urls: () => (urls.length > first.length ? urls : first),
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

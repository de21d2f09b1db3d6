/** Following one run that exists: to its end, and its outputs home. What goes wrong becomes part of its record. */
import type { Client } from '../../client/index.js'
import type { DownloadedFile, Downloader, Namer, Output, Progress as Transfer } from '../../download/index.js'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { RunState } from '../../protocol/run.js'
import { shortened } from '../../protocol/text.js'
import { asRushesError, interrupted } from '../exit.js'
import type { Delivery } from '../flags/delivery.js'
import { Interruption, type Interrupts } from '../interrupts.js'
import type { RunRecord } from '../render/run-json.js'

/** A run as it is known when the following begins. */
export interface Known {
  readonly id: string
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** The body of the 201. */
  readonly service?: unknown
  /** Monotonic instants, when this process made it. */
  readonly sentAtMs?: number | undefined
  readonly answeredAtMs?: number | undefined
  /** ISO 8601. */
  readonly createdAt?: string | undefined
}

export interface Following {
  readonly client: Pick<Client, 'states' | 'get'>
  readonly clock: Clock
  readonly interrupts: Interrupts
  readonly delivery: Delivery
  readonly downloader: Downloader | undefined
  readonly namer: Namer | undefined
  readonly stdout: NodeJS.WritableStream
  /** The command that picks a run up again. */
  resume(id: string): string
  warn(message: string): void
  onState(id: string, state: RunState): void
  onTrouble(id: string, error: RushesError): void
  onTransfer(id: string, transfer: Transfer): void
}

export interface Watched {
  readonly known: Known
  readonly state: RunState | undefined
  readonly error: RushesError | undefined
  readonly finishedAt: string | undefined
  readonly elapsedMs: number | undefined
}

/** To the final status, or to what ended the wait. Never rejects. */
export async function watch(following: Following, known: Known): Promise<Watched> {
  const { client, clock, interrupts, delivery } = following
  let state: RunState | undefined
  try {
    const options = {
      timeoutMs: delivery.timeoutMs,
      createdAtMs: known.answeredAtMs,
      signal: interrupts.first,
      onTrouble: (error: RushesError) => following.onTrouble(known.id, error),
    }
    for await (state of client.states(known.id, options)) following.onState(known.id, state)
    return {
      known,
      state,
      error: state?.phase === 'failed' ? runFailed(state) : undefined,
      finishedAt: new Date(clock.now()).toISOString(),
      elapsedMs: known.sentAtMs === undefined ? undefined : clock.monotonic() - known.sentAtMs,
    }
  } catch (thrown) {
    const error = withWayBack(thrown, known.id, following)
    return { known, state, error, finishedAt: undefined, elapsedMs: undefined }
  }
}

const runFailed = (state: RunState): RushesError =>
  new RushesError(
    'run_failed',
    `The run ended as ${state.status}: ${state.failure === undefined ? 'the service gives no reason.' : shortened(state.failure, 2_000)}`,
    {
      runId: state.id,
      hint: 'Nothing was downloaded. Whether it was charged is in the account.',
    },
  )

/** The run goes on without us: every message says how to come back to it. */
function withWayBack(thrown: unknown, id: string, { resume }: Following): RushesError {
  const pickUp = `Pick it up with: ${resume(id)}`
  if (thrown instanceof Interruption)
    return interrupted(thrown, 'Interrupted; the run goes on.', pickUp).about(id)
  const error = asRushesError(thrown)
  const isOver = error.httpStatus === 404
  const hint = [error.hint, ...(isOver ? [] : [pickUp])].filter((each) => each !== undefined).join(' ')
  return new RushesError(error.code, error.message, {
    hint: hint === '' ? undefined : hint,
    cause: error.cause,
    httpStatus: error.httpStatus,
    exitCode: error.exitCode,
    runId: id,
  })
}

/** The outputs of a watched run to where they belong. Never rejects. */
export async function collect(following: Following, watched: Watched): Promise<RunRecord> {
  const { known, state, error, finishedAt, elapsedMs } = watched
  const record: RunRecord = {
    id: known.id,
    kind: known.kind,
    model: known.model,
    state,
    service: state?.service ?? known.service,
    files: [],
    error,
    createdAt: known.createdAt,
    finishedAt,
    elapsedMs,
  }
  if (state?.phase !== 'succeeded' || error !== undefined) return record
  return { ...record, ...(await download(following, known, state)) }
}

async function download(
  following: Following,
  known: Known,
  state: RunState,
): Promise<{ files: readonly DownloadedFile[]; error: RushesError | undefined }> {
  const { delivery, downloader, namer, interrupts } = following
  if (delivery.target === undefined || downloader === undefined) return { files: [], error: undefined }
  try {
    const results = await downloader.download(outputsOf(following, known, state), {
      target: delivery.target,
      namer,
      overwrite: delivery.overwrite,
      stdout: following.stdout as import('node:stream').Writable,
      signal: interrupts.first,
      onProgress: (transfer) => following.onTransfer(known.id, transfer),
    })
    for (const result of results)
      if (result.ok) for (const warning of result.warnings) following.warn(warning)
    return {
      files: results.flatMap((result) => (result.ok ? [result.file] : [])),
      error: firstError(
        results.flatMap((result) => (result.ok ? [] : [result.error])),
        known.id,
        following,
      ),
    }
  } catch (thrown) {
    const pickUp = `The run has succeeded and is paid for. Fetch its outputs with: ${following.resume(known.id)}`
    if (thrown instanceof Interruption)
      return {
        files: [],
        error: interrupted(thrown, 'Interrupted during the download.', pickUp).about(known.id),
      }
    return { files: [], error: asRushesError(thrown).about(known.id) }
  }
}

function outputsOf({ client, interrupts }: Following, known: Known, state: RunState): readonly Output[] {
  // One question for fresh links serves every output of the run.
  let fresh: Promise<RunState> | undefined
  return state.urls.map((url, at) => ({
    url,
    runId: known.id,
    kind: known.kind,
    freshUrl: async () => {
      fresh ??= client.get(known.id, interrupts.first)
      return (await fresh).urls[at]
    },
  }))
}

function firstError(
  errors: readonly RushesError[],
  id: string,
  { resume }: Following,
): RushesError | undefined {
  const [first, ...others] = errors
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${others.length} more outputs of this run)`
  return new RushesError(first.code, `${first.message}${more}`, {
    hint: [first.hint, `Fetch its outputs with: ${resume(id)}`].filter(Boolean).join(' '),
    cause: first.cause,
    httpStatus: first.httpStatus,
    exitCode: first.exitCode,
    runId: id,
  })
}

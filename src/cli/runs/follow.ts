/** What following a run takes: the parts that `watch` and `collect` share, and what is known of the run before. */
import type { Client } from '../../client/index.js'
import type { Downloader, Namer, DownloadProgress as Transfer } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { JournalRun } from '../../journal/index.js'
import type { RunState } from '../../protocol/run.js'
import type { Delivery } from '../flags/delivery.js'
import type { Interrupts } from '../process/interrupts.js'
import type { OutputStream } from '../process/io.js'
import type { Recorder } from './record.js'

/** A run as it is known when the following begins. */
export interface Known {
  readonly id: string
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** As it was sent; data: URLs as what identifies them. */
  readonly input?: unknown
  /** The body of the 201. */
  readonly service?: unknown
  /** Monotonic instants, when this process made it. */
  readonly sentAtMs?: number | undefined
  readonly answeredAtMs?: number | undefined
  /** ISO 8601. */
  readonly createdAt?: string | undefined
  /** Of a run that was seen to its end before. */
  readonly elapsedMs?: number | undefined
  /** A look that was just made. */
  readonly state?: RunState | undefined
}

export interface Following {
  readonly client: Pick<Client, 'states' | 'get'>
  readonly clock: Clock
  readonly interrupts: Interrupts
  readonly delivery: Delivery
  readonly downloader: Downloader | undefined
  readonly namer: Namer | undefined
  /** Standard output as a stream, for the bytes of `-o -`. */
  stdout(): OutputStream
  readonly recorder: Pick<Recorder, 'saw' | 'missed' | 'files' | 'filesOf'>
  /** The service, as a sidecar names it. */
  readonly address: string
  /** The command that picks a run up again. */
  resume(id: string, verb: 'wait' | 'download'): string
  warn(message: string): void
  onState(id: string, state: RunState): void
  onTrouble(id: string, error: RushesError): void
  onTransfer(id: string, transfer: Transfer): void
}

/** What the journal tells of a run that was created earlier. */
export const knownOf = (id: string, run: JournalRun | undefined): Known =>
  run === undefined
    ? { id }
    : {
        id,
        kind: run.kind,
        model: run.model,
        input: run.input,
        createdAt: new Date(run.createdAtMs).toISOString(),
        elapsedMs: run.elapsedMs,
      }

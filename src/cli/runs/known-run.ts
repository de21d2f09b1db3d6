/** A run as it is known when a command begins to follow it. */
import type { JournalRun } from '../../journal/index.js'
import type { RunState } from '../../protocol/run-state.js'

export interface KnownRun {
  readonly id: string
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** As it was sent; data: URLs as what identifies them. */
  readonly input?: unknown
  /** The body of the 201. */
  readonly service?: unknown
  /** Monotonic instants, when this process created it. */
  readonly sentAtMs?: number | undefined
  readonly answeredAtMs?: number | undefined
  /** ISO 8601. */
  readonly createdAt?: string | undefined
  /** Of a run whose end an earlier command has seen. */
  readonly elapsedMs?: number | undefined
  /** From a status request that was just made. */
  readonly state?: RunState | undefined
}

/** What the journal tells of a run that was created earlier. */
export const knownRun = (id: string, run: JournalRun | undefined): KnownRun =>
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

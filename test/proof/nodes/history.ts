/**
 * Events of a proof with several nodes, in the order in which they were observed. Clients and the fault injector write
 * them, and the checker reads nothing else. Times are milliseconds of one monotonic clock.
 */
import { createWriteStream } from 'node:fs'

export interface Requested {
  readonly sentMs: number
  readonly receivedMs: number
  /** Name of the API key. */
  readonly key: string
  /** HTTP status. 0 if there was no response. */
  readonly status: number
}

export type Event =
  /** A create with a unique prompt. `id` is set if it was accepted. */
  | (Requested & { readonly is: 'create'; readonly prompt: string; readonly id?: string })
  | (Requested & { readonly is: 'poll'; readonly id: string; readonly runStatus?: string })
  | { readonly is: 'output'; readonly id: string; readonly sha256: string }
  | { readonly is: 'fault'; readonly atMs: number; readonly what: string }
  | { readonly is: 'rolling restart' | 'database restart'; readonly fromMs: number; readonly toMs: number }
  /** The following events are read after all runs have ended. */
  | {
      readonly is: 'stored'
      readonly id: string
      readonly prompt: string
      readonly status: string
      readonly outputs: readonly string[]
    }
  | {
      readonly is: 'entry'
      readonly run: string
      readonly kind: 'charge' | 'refund'
      readonly amount: number
    }
  | { readonly is: 'verified'; readonly problems: readonly string[] }

export interface History {
  readonly events: readonly Event[]
  add(event: Event): void
  close(): Promise<void>
}

/** Keeps events in memory and also writes them to a file, for analysis after a failure. */
export function createHistory(path: string): History {
  const events: Event[] = []
  const file = createWriteStream(path)
  return {
    events,
    add(event) {
      events.push(event)
      file.write(`${JSON.stringify(event)}\n`)
    },
    close: () => new Promise((resolve) => void file.end(resolve)),
  }
}

/**
 * What happened in a proof of several nodes, in the order in which it was seen. The clients and the injector of faults write it,
 * and the checker reads nothing else. Times are milliseconds of one monotonic clock.
 */
import { createWriteStream } from 'node:fs'

export interface Requested {
  readonly sentMs: number
  readonly receivedMs: number
  /** The name of its key. */
  readonly key: string
  /** HTTP status; 0 when there was no response. */
  readonly status: number
}

export type Event =
  /** A create: its prompt is of this create alone. `id` when it was accepted. */
  | (Requested & { readonly is: 'create'; readonly prompt: string; readonly id?: string })
  | (Requested & { readonly is: 'poll'; readonly id: string; readonly runStatus?: string })
  | { readonly is: 'output'; readonly id: string; readonly sha256: string }
  | { readonly is: 'fault'; readonly atMs: number; readonly what: string }
  /** The rest is read when everything has ended. */
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

/** Kept in memory, and written to a file, so that a failure can be read afterwards. */
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

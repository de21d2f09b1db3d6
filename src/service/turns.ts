/** Limits how much work runs at once. The rest waits in the order of the calls, and what is too much is refused. */
import { onAbort } from '../host/abort.js'
import type { Refusal } from './rules/refusal.js'

export interface TurnsOptions {
  readonly atOnce: number
  readonly maxWaiting: number
  /** Thrown when `maxWaiting` wait already. */
  refusal(): Refusal
}

/** Work whose signal is aborted while it waits is dropped; the signal's reason is thrown. */
export type Turns = <Result>(work: () => Promise<Result>, signal?: AbortSignal) => Promise<Result>

export function createTurns({ atOnce, maxWaiting, refusal }: TurnsOptions): Turns {
  const waiting = new Set<() => void>()
  let running = 0

  function wait(signal: AbortSignal | undefined): Promise<void> {
    if (waiting.size >= maxWaiting) throw refusal()
    return new Promise((resolve, reject) => {
      const begin = () => {
        forget()
        resolve()
      }
      waiting.add(begin)
      const forget = onAbort(signal, () => {
        waiting.delete(begin)
        reject(signal?.reason)
      })
    })
  }

  return async (work, signal) => {
    signal?.throwIfAborted()
    if (running >= atOnce) await wait(signal)
    else running++
    try {
      return await work()
    } finally {
      // The turn passes to the next one.
      const [next] = waiting
      if (next === undefined) running--
      else {
        waiting.delete(next)
        next()
      }
    }
  }
}

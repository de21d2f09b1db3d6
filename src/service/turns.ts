/** Limits how much work runs at once. The rest waits in the order of the calls, and what is too much is refused. */
import { onAbort } from '../host/abort.js'
import type { Refusal } from './rules/refusal.js'

export interface TurnsOptions {
  readonly atOnce: number
  readonly maxWaiting: number
  /** Thrown when `maxWaiting` wait already. */
  refusal(): Refusal
}

/**
 * Work whose signal is aborted while it waits is dropped; the signal's reason is thrown. `hasBegun`: it continues what has begun, so it
 * waits however many do.
 */
export type Turns = <Result>(
  work: () => Promise<Result>,
  signal?: AbortSignal,
  hasBegun?: boolean,
) => Promise<Result>

/** As `createTurns`, for each owner apart. */
export function createOwnedTurns(
  options: TurnsOptions,
): <Result>(owner: number, work: () => Promise<Result>, hasBegun?: boolean) => Promise<Result> {
  const owned = new Map<number, { readonly inTurn: Turns; users: number }>()
  return async (owner, work, hasBegun) => {
    const own = owned.get(owner) ?? { inTurn: createTurns(options), users: 0 }
    owned.set(owner, own)
    own.users++
    try {
      return await own.inTurn(work, undefined, hasBegun)
    } finally {
      own.users--
      if (own.users === 0) owned.delete(owner)
    }
  }
}

export function createTurns({ atOnce, maxWaiting, refusal }: TurnsOptions): Turns {
  const waiting = new Set<() => void>()
  let running = 0

  function wait(signal: AbortSignal | undefined, hasBegun: boolean): Promise<void> {
    if (waiting.size >= maxWaiting && !hasBegun) throw refusal()
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

  return async (work, signal, hasBegun = false) => {
    signal?.throwIfAborted()
    if (running >= atOnce) await wait(signal, hasBegun)
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

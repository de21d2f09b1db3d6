/** Limits how many calls run at the same time. Other calls wait in order. */
import { onAbort } from './abort.js'

interface SlotsOptions {
  /** Maximum number of waiting calls; a further call throws `refusal()`. Default: no limit. */
  readonly maxWaiting?: number
  refusal?(): Error
}

export interface Slots {
  /**
   * Starts `work` synchronously if a slot is free. An abort removes a waiting call from the queue, and `use` rejects with
   * the signal's reason.
   */
  use<Result>(
    work: () => Promise<Result>,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Result>
}

export function createSlots(
  count: number,
  {
    maxWaiting = Number.POSITIVE_INFINITY,
    refusal = () => new Error('too many are waiting'),
  }: SlotsOptions = {},
): Slots {
  const waiting = new Set<() => void>()
  let free = count

  /** The call that ends passes its slot on, so that no other call takes it. */
  const wait = (signal: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const begin = () => {
        leave()
        waiting.delete(begin)
        resolve()
      }
      waiting.add(begin)
      const leave = onAbort(signal, () => {
        waiting.delete(begin)
        reject(signal?.reason)
      })
    })

  return {
    async use(work, { signal } = {}) {
      signal?.throwIfAborted()
      if (free <= 0 && waiting.size >= maxWaiting) throw refusal()
      if (free > 0) free--
      else await wait(signal)
      try {
        return await work()
      } finally {
        const [next] = waiting
        if (next === undefined) free++
        else next()
      }
    },
  }
}

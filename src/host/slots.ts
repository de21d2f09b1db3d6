/** Limits how many calls run at the same time. Other calls wait in order. */
import { onAbort } from './abort.js'

/** Frees the slot for the next waiting call; a second call has no effect. */
type ReleaseSlot = () => void

interface SlotsOptions {
  /** Maximum number of waiting calls; a further call throws `refusal()`. Default: no limit. */
  readonly maxWaiting?: number
  refusal?(): Error
}

export interface Slots {
  /**
   * Starts `work` synchronously if a slot is free. `release` frees the slot before `work` has ended. An abort removes a
   * waiting call from the queue, and `use` rejects with the signal's reason.
   */
  use<Result>(
    work: (release: ReleaseSlot) => Promise<Result>,
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

  function occupy(): ReleaseSlot {
    let isHeld = true
    free--
    return () => {
      if (!isHeld) return
      isHeld = false
      free++
      const [next] = waiting
      next?.()
    }
  }

  const wait = (signal: AbortSignal | undefined): Promise<ReleaseSlot> =>
    new Promise((resolve, reject) => {
      const begin = () => {
        leave()
        waiting.delete(begin)
        resolve(occupy())
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
      const release = free > 0 ? occupy() : await wait(signal)
      try {
        return await work(release)
      } finally {
        release()
      }
    },
  }
}

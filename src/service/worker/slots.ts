/** Slots for work that takes much of the machine, given out in the order of the calls. */
import { onAbort } from '../../host/abort.js'

/** Gives the slot to the next one; without effect when called again. */
export type ReleaseSlot = () => void

/** Rejects with the signal's reason when that is aborted first. */
export type TakeSlot = (signal: AbortSignal) => Promise<ReleaseSlot>

export function createSlots(count: number): TakeSlot {
  const waiting = new Set<() => void>()
  let free = count

  function releaseOnce(): ReleaseSlot {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      free++
      const [next] = waiting
      next?.()
    }
  }

  return (signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const take = () => {
        forget()
        waiting.delete(take)
        free--
        resolve(releaseOnce())
      }
      const forget = onAbort(signal, () => {
        waiting.delete(take)
        reject(signal.reason)
      })
      if (free > 0) take()
      else waiting.add(take)
    })
}

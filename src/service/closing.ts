import type { Clock } from '../host/clock.js'

/** Waits for the work, but no longer than this; whether it was done in time. Rejects when the work does. */
export async function settlesWithin(
  ms: number,
  work: Promise<unknown>,
  clock: Pick<Clock, 'sleep'>,
): Promise<boolean> {
  const done = new AbortController()
  const late = clock.sleep(ms, done.signal).then(
    () => false,
    () => true,
  )
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    done.abort()
  }
}

import type { Clock } from '../host/clock.js'

/** Whether the work is done within this time; does not wait longer. Rejects when the work does. */
export async function settlesWithin(
  ms: number,
  work: Promise<unknown>,
  clock: Pick<Clock, 'sleep'>,
): Promise<boolean> {
  const done = new AbortController()
  const timeout = clock.sleep(ms, done.signal).then(
    () => false,
    () => true,
  )
  try {
    return await Promise.race([work.then(() => true), timeout])
  } finally {
    done.abort()
  }
}

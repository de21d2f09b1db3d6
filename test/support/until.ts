import { setTimeout as sleep } from 'node:timers/promises'
import { PATIENCE_MS } from './patience.js'

const POLL_MS = 20

/** Polls until the function returns a value. Throws after the deadline. `what`: description for the error. */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  deadlineMs = PATIENCE_MS,
): Promise<T> {
  const endAt = performance.now() + deadlineMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > endAt) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await sleep(POLL_MS)
  }
}

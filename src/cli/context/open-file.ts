/** Opens a file or an address with the platform's opener. */
import { once } from 'node:events'
import { onAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { errorCode } from '../../host/system-error.js'

/** An opener that fails ends within this time; one that is the browser itself runs until that is closed. */
const MAX_WAIT_MS = 2_000

/** Documented by xdg-open: "A required tool could not be found." */
const NO_PROGRAM = 3

export interface OpenOptions {
  readonly clock: Clock
  /** Ends the waiting, not the opener. */
  readonly signal: AbortSignal
}

/** Throws with a sentence when the opener cannot be started or fails, as it does on a machine without a browser. */
export async function openFile(target: string, { clock, signal }: OpenOptions): Promise<void> {
  const { default: open } = await import('open')
  const opener = await open(target)
  const ended = new AbortController()
  const sleeping = clock.sleep(MAX_WAIT_MS, ended.signal).catch(() => undefined)
  const stopWaiting = onAbort(signal, () => ended.abort())
  try {
    // Rejects on 'error', which without a listener would end the process.
    const [code] = (await Promise.race([once(opener, 'exit'), sleeping])) ?? []
    if (typeof code === 'number' && code !== 0) throw new Error(failureOf(opener.spawnfile, code))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Error(`${opener.spawnfile} is not installed`)
    throw error
  } finally {
    stopWaiting()
    ended.abort()
  }
}

const failureOf = (opener: string, code: number): string =>
  opener === 'xdg-open' && code === NO_PROGRAM
    ? 'xdg-open found no browser or other program for it'
    : `${opener} failed with exit code ${code}`

/** Opens a file or a URL with the platform's opener. */
import { once } from 'node:events'
import { extname } from 'node:path'
import { hasKnownFormat } from '../../download/file-kind.js'
import { onAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { errorCode } from '../../host/system-error.js'
import { isHttpUrl } from '../../protocol/parse.js'

/**
 * Maximum wait for the opener. A failing opener exits sooner. An opener that is the browser itself runs until the user
 * closes it.
 */
const MAX_WAIT_MS = 2_000

/** Exit code that xdg-open documents as "A required tool could not be found." */
const NO_PROGRAM = 3

/**
 * Throws for a file of an unknown format: the system may run it, for example `.exe` or `.desktop`, and the ending may come
 * from the URL of an output.
 */
export function refuseProgram(target: string): void {
  if (isHttpUrl(target) || hasKnownFormat(target)) return
  throw new Error(`the system may run a ${extname(target)} file as a program`)
}

export interface OpenOptions {
  readonly clock: Clock
  /** Aborting stops the wait. The opener continues. */
  readonly signal: AbortSignal
}

/**
 * Opens the target. Throws an error with a readable message when the opener cannot start or fails, for example on a
 * machine without a browser.
 */
export async function openFile(target: string, { clock, signal }: OpenOptions): Promise<void> {
  const { default: open } = await import('open')
  const opener = await open(target)
  const ended = new AbortController()
  const sleeping = clock.sleep(MAX_WAIT_MS, ended.signal).catch(() => undefined)
  const stopWaiting = onAbort(signal, () => ended.abort())
  try {
    // `once` rejects on 'error'. Without a listener, that event would end the process.
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

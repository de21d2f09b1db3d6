/** A service that starts on a full disk waits until it can open its data, and does not need a restart by hand. */
import { statfsSync } from 'node:fs'
import { errorCode } from '../../host/system-error.js'
import type { Context } from './context.js'

const RETRY_MS = 1_000
/** SQLite reports some failures of a full disk as I/O errors, so the free space decides. */
const MIN_FREE_BYTES = 1_048_576

/** Calls `create` until it does not fail because of a full disk. Rejects when it fails otherwise, or on Ctrl-C. */
export async function createWhenDiskHasSpace<Options extends { readonly dataFolder: string }, Service>(
  { out, clock, interrupts }: Pick<Context, 'out' | 'clock' | 'interrupts'>,
  create: (options: Options) => Promise<Service>,
  options: Options,
): Promise<Service> {
  for (let said = false; ; said = true) {
    try {
      return await create(options)
    } catch (error) {
      if (!isDiskFull(error, options.dataFolder)) throw error
      if (!said)
        out.warn(`The disk of ${options.dataFolder} is full. The service starts when there is space.`)
      await clock.sleep(RETRY_MS, interrupts.first)
    }
  }
}

function isDiskFull(error: unknown, folder: string): boolean {
  const code = errorCode((error as Error).cause) ?? ''
  if (/^(ENOSPC|EDQUOT|SQLITE_FULL)/.test(code)) return true
  return /^SQLITE_(IOERR|CANTOPEN)/.test(code) && hasNoSpace(folder)
}

function hasNoSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < MIN_FREE_BYTES
  } catch {
    return false
  }
}

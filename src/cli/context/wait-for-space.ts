/** A service that starts on a full disk waits until it can open its data, and does not need a restart by hand. */
import { isDiskFull } from '../../host/disk-space.js'
import { errorCode } from '../../host/system-error.js'
import type { Context } from './context.js'

const RETRY_MS = 1_000

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
      if (!isForLackOfSpace(error, options.dataFolder)) throw error
      if (!said)
        out.warn(`The disk of ${options.dataFolder} is full. The service starts when there is space.`)
      await clock.sleep(RETRY_MS, interrupts.first)
    }
  }
}

function isForLackOfSpace(error: unknown, folder: string): boolean {
  const code = errorCode((error as Error).cause) ?? ''
  return (
    /^(ENOSPC|EDQUOT|SQLITE_FULL)/.test(code) || (/^SQLITE_(IOERR|CANTOPEN)/.test(code) && isDiskFull(folder))
  )
}

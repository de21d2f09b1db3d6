/** The claim of a batch on its manifest. */
import type { Claim } from '../../batch/lock/claim.js'
import { isSystemError } from '../../host/system-error.js'
import type { Context } from '../context/context.js'
import { neverWritable } from './open-lock.js'

/** Where the folder cannot be written, every check fails: a batch with nothing to do needs none. */
export async function claimFor(
  { clock, stateFolder, out, interrupts }: Context,
  lockPath: string,
  onObserve: (message: string) => void = out.note,
): Promise<Claim> {
  const { claimBatch } = await import('../../batch/lock/claim.js')
  try {
    return await claimBatch({ lockPath, stateFolder, clock, signal: interrupts.first, onObserve })
  } catch (error) {
    if (!isSystemError(error)) throw error
    const failed = neverWritable(lockPath, error)
    return { check: () => Promise.reject(failed), lost: new AbortController().signal, async release() {} }
  }
}

const RETRY_MS = 1_000

/** The same, waiting for another batch that works on the manifest. */
export async function claimWhenFree(ctx: Context, lockPath: string): Promise<Claim> {
  const { isHeldByAnother } = await import('../../batch/lock/claim.js')
  const said = new Set<string>()
  const sayOnce = (message: string) => {
    if (!said.has(message)) ctx.out.note(message)
    said.add(message)
  }
  for (;;) {
    try {
      return await claimFor(ctx, lockPath, sayOnce)
    } catch (error) {
      if (!isHeldByAnother(error)) throw error
      sayOnce('Another batch is running on this manifest. Waiting until it ends.')
    }
    await ctx.clock.sleep(RETRY_MS, ctx.interrupts.first)
  }
}

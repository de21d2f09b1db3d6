/** Opens a file or an address with the platform's opener. */
import { once } from 'node:events'
import { describeError, errorCode } from '../../host/system-error.js'

/** Resolves once the opener runs; its exit code is not waited for. Throws with a sentence when it cannot be started. */
export async function openFile(target: string): Promise<void> {
  const { default: open } = await import('open')
  const opener = await open(target)
  try {
    // Rejects on 'error', which without a listener would end the process.
    await once(opener, 'spawn')
  } catch (error) {
    throw new Error(
      errorCode(error) === 'ENOENT'
        ? `${opener.spawnfile} is not installed`
        : describeError(error, opener.spawnfile),
    )
  }
}

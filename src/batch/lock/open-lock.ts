/** The lock file of a batch and its claim: writes to it while the batch runs. */
import { RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { asRushesError } from '../../host/interrupts.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { listNames } from '../../protocol/text.js'
import type { Plan } from '../plan/index.js'
import { activeSteps } from '../results/rows.js'
import type { BatchClaim, ClaimOptions } from './claim.js'
import { createLockKeeper, isWritten, type LockKeeper, lockFileAt } from './file.js'
import type { Lock } from './lock.js'

export interface BatchLock {
  readonly keeper: LockKeeper
  /** Whether another program changed the lock entry of an active row, or of a row that it uses. */
  isChanged(): boolean
  /** Repeats a failed write. Returns the errors that decide the exit code. */
  finish(warn: (message: string) => void): Promise<readonly RushesError[]>
}

export interface OpenLockOptions {
  readonly lockPath: string
  readonly manifest: { readonly path: string }
  /** The lock file, as it was read. */
  readonly lock: Lock
  readonly plan: Plan
  readonly claim: BatchClaim
  readonly clock: Clock
  /** Command that continues the batch and pays for no run again. */
  readonly continuation: string
}

export function openLock(options: OpenLockOptions): BatchLock {
  const { lockPath, manifest, lock, plan, claim, clock, continuation } = options
  const file = lockFileAt(lockPath, manifest.path, clock)
  const active = activeSteps(plan)
  const rows = new Set(active.flatMap(({ entry, sources }) => [entry.name, ...sources]))
  const changed = new Set<string>()
  let hasWritten = false
  const keeper = createLockKeeper({
    base: lock,
    lock: plan.lock,
    read() {
      try {
        return file.read()
      } catch (error) {
        throw hasWritten && error instanceof RushesError ? unreadable(error) : error
      }
    },
    async write(next) {
      await claim.check()
      const isWritten = await file.write(next).catch((error) => {
        throw hasWritten ? unwritable(lockPath, error, continuation) : neverWritable(lockPath, error)
      })
      hasWritten ||= isWritten
      return isWritten
    },
    onChanged: (names) => {
      for (const name of names) if (rows.has(name)) changed.add(name)
    },
  })

  /** Writes the lock file. Does nothing if it is unchanged. */
  async function write(warn: (message: string) => void): Promise<RushesError | undefined> {
    const hasWorked = active.length > 0
    if (claim.lost.aborted || (!hasWorked && isWritten(lockPath, manifest.path, plan.lock))) return undefined
    const error = await keeper.write().then(() => undefined, asRushesError)
    if (error === undefined || hasWorked) return error
    // All selected files are up to date. Only renamed or removed rows were not recorded, so a warning is enough.
    warn(error.message)
    return undefined
  }

  return {
    keeper,
    isChanged: () => changed.size > 0,
    async finish(warn) {
      const error = await write(warn)
      return [
        ...(error === undefined ? [] : [error]),
        ...(changed.size === 0 ? [] : [changedError(lockPath, [...changed], continuation)]),
      ]
    },
  }
}

function changedError(path: string, names: readonly string[], continuation: string): RushesError {
  return new RushesError(
    'download_failed',
    `${path} was changed while this batch was running (${listNames(names)}). This batch stopped creating runs.`,
    {
      hint: `Continue with ${continuation}: it goes by the lock file as it is now, and nothing is paid twice.`,
    },
  )
}

/**
 * Error for a lock file that cannot be written. No create was sent, because the lock file is written before each one.
 */
const neverWritable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot write the lock file ${describeError(error, path)}. Nothing was sent.`,
    'Check that the folder is writable and that the disk has space.',
  )

const unwritable = (path: string, error: unknown, continuation: string): RushesError =>
  new RushesError('download_failed', `Cannot write the lock file ${describeError(error, path)}.`, {
    hint:
      'Nothing more is created without it. Accepted runs are in `rushes list`. ' +
      `When the folder is writable again, continue with ${continuation}.`,
    cause: error,
  })

const unreadable = ({ message, hint }: RushesError): RushesError =>
  new RushesError('download_failed', `${message} It was changed while this batch was running.`, { hint })

/**
 * Claims the manifest. If the folder cannot be written, only the checks of the claim fail: a batch without work needs
 * no claim.
 */
export async function claimFor(options: ClaimOptions): Promise<BatchClaim> {
  const { claimBatch } = await import('./claim.js')
  try {
    return await claimBatch(options)
  } catch (error) {
    if (!isSystemError(error)) throw error
    const failed = neverWritable(options.lockPath, error)
    return { check: () => Promise.reject(failed), lost: new AbortController().signal, async release() {} }
  }
}

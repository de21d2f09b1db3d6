/** The lock file of a batch that is carried out: what is written into it, and the errors where that fails. */
import { activeSteps } from '../../batch/carry-out/index.js'
import type { Claim } from '../../batch/lock/claim.js'
import { isWritten, lockFileAt } from '../../batch/lock/file.js'
import { createLockKeeper, type LockKeeper } from '../../batch/lock/keeper.js'
import type { Plan } from '../../batch/plan/index.js'
import { RushesError, usageError } from '../../errors.js'
import { describeError } from '../../host/system-error.js'
import { printable } from '../../protocol/text.js'
import { asRushesError } from '../process/exit.js'
import type { Prepared } from './prepare.js'

export interface BatchLock {
  readonly keeper: LockKeeper
  /** Whether somebody else has changed the entry of a row of this batch, or of one that such a row uses. */
  isChanged(): boolean
  /** Writes what an earlier write could not. The errors that decide the exit code. */
  finish(warn: (message: string) => void): Promise<readonly RushesError[]>
}

export function openLock({ lockPath, manifest, lock }: Prepared, plan: Plan, claim: Claim): BatchLock {
  const file = lockFileAt(lockPath, manifest.path)
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
        throw hasWritten ? unwritable(lockPath, error) : neverWritable(lockPath, error)
      })
      hasWritten ||= isWritten
      return isWritten
    },
    onChanged: (names) => {
      for (const name of names) if (rows.has(name)) changed.add(name)
    },
  })

  /** Writes nothing where nothing has changed. */
  async function write(warn: (message: string) => void): Promise<RushesError | undefined> {
    const hasWorked = active.length > 0
    if (claim.lost.aborted || (!hasWorked && isWritten(lockPath, manifest.path, plan.lock))) return undefined
    const error = await keeper.write().then(() => undefined, asRushesError)
    if (error === undefined || hasWorked) return error
    // Every selected file is up to date, and only the bookkeeping of renamed or removed rows is missing.
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
        ...(changed.size === 0 ? [] : [changedError(lockPath, [...changed])]),
      ]
    },
  }
}

const MAX_NAMES = 10

function changedError(path: string, names: readonly string[]): RushesError {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  const shown = names.slice(0, MAX_NAMES).map(printable).join(', ')
  return new RushesError(
    'download_failed',
    `${path} was changed while this batch was running (${shown}${more}). This batch stopped creating runs.`,
    { hint: 'Run the same command again: it goes by the lock file as it is now, and nothing is paid twice.' },
  )
}

/** Every create is preceded by a write of the lock file. */
export const neverWritable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot write the lock file ${describeError(error, path)}. Nothing was sent.`,
    'Check that the folder is writable and that the disk has space.',
  )

const unwritable = (path: string, error: unknown): RushesError =>
  new RushesError('download_failed', `Cannot write the lock file ${describeError(error, path)}.`, {
    hint: 'Nothing more is created without it. Accepted runs are in `rushes list`. When the folder is writable again, run the same command: it continues from there.',
    cause: error,
  })

const unreadable = ({ message, hint }: RushesError): RushesError =>
  new RushesError('download_failed', `${message} It was changed while this batch was running.`, { hint })

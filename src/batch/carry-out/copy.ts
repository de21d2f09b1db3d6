/** A row whose output lies on this machine already, byte for byte: it is copied, and the service is not asked. */

import { relative } from 'node:path'
import { RushesError } from '../../errors.js'
import { copyAtomically } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import type { LockKeeper } from '../lock/keeper.js'
import type { Made } from '../lock/lock.js'
import type { Active, RowResult } from './row-result.js'

export interface CopyParts {
  readonly keeper: LockKeeper
  /** Absolute: the manifest's. */
  readonly folder: string
}

/** Never rejects. */
export async function copyRow({ keeper, folder }: CopyParts, step: Active): Promise<RowResult> {
  const before = keeper.entry(step.entry.name)
  const made = before?.made
  const from = step.action.do === 'download' ? step.action.copyFrom : undefined
  if (made === undefined || from === undefined)
    throw new Error('only a file that the lock file knows is copied')
  try {
    await copyAtomically(from, step.path)
    const moved: Made = { ...made, file: relative(folder, step.path).replaceAll('\\', '/') }
    await keeper.set(step.entry.name, { made: moved, pending: undefined, further: before?.further ?? {} })
    return { step, result: 'downloaded', made: moved, run: made.run }
  } catch (error) {
    return { step, result: 'failed', error: notCopied(step, error) }
  }
}

const notCopied = ({ file }: Active, thrown: unknown): RushesError =>
  thrown instanceof RushesError
    ? thrown
    : new RushesError('download_failed', `Cannot write ${describeError(thrown, file)}.`, {
        cause: thrown,
      })

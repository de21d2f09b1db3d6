/** A row whose outputs lie on this machine already, byte for byte: they are copied, and the service is not asked. */

import { resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { copyAtomically } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import type { LockKeeper } from '../lock/keeper.js'
import { type FurtherOutput, outputsOf } from '../lock/lock.js'
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
  if (made === undefined) throw new Error('only files that the lock file knows are copied')
  for (const { file, fact } of step.outputs)
    if (fact.is === 'missing' && fact.elsewhere !== undefined)
      try {
        await copyAtomically(fact.elsewhere, resolve(folder, file))
      } catch (error) {
        return { step, result: 'failed', error: notCopied(file, error) }
      }
  const [first, ...further] = outputsOf(made).map((output, at) => step.outputs[at]?.file ?? output.file)
  const moved = {
    ...made,
    file: first ?? made.file,
    ...(made.outputs && { outputs: withFiles(made.outputs, further) }),
  }
  await keeper.set(step.entry.name, {
    ...before,
    made: moved,
    pending: before?.pending,
    further: before?.further ?? {},
  })
  return { step, result: 'downloaded', made: moved, run: made.run }
}

const withFiles = (outputs: readonly FurtherOutput[], files: readonly string[]): readonly FurtherOutput[] =>
  outputs.map((output, at) => ({ ...output, file: files[at] ?? output.file }))

const notCopied = (file: string, thrown: unknown): RushesError =>
  thrown instanceof RushesError
    ? thrown
    : new RushesError('download_failed', `Cannot write ${describeError(thrown, file)}.`, {
        cause: thrown,
      })

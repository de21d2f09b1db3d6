/** Whether a downloaded file may get its name. It is checked before the file is renamed, so that nothing is lost. */
import { existsSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { sha256OfFile } from '../../host/file-content.js'
import type { Made } from '../lock/lock.js'
import type { Active, OutputFile } from './row-result.js'

export interface Placed {
  readonly step: Active
  /** Absolute: the manifest's. */
  readonly folder: string
  /** How many outputs the run has. */
  readonly outputs: number
  /** `--overwrite`. */
  readonly overwrites: boolean
}

/** Throws `download_failed`. */
export async function checkPlacing(
  file: Pick<OutputFile, 'path' | 'sha256'>,
  { step, folder, outputs, overwrites }: Placed,
): Promise<void> {
  const made = step.locked?.made
  if (step.action.do === 'download' && step.action.why !== 'unfinished' && made?.run === step.action.run)
    refuseOtherBytes(file, made, outputs)
  // What is at the path of the first output was looked at when the plan was made.
  if (
    isFurther(file, step) &&
    !overwrites &&
    existsSync(file.path) &&
    !(await isOurs(file.path, made, folder))
  )
    throw new RushesError('download_failed', `${file.path} already exists, and is not of this row.`, {
      hint: 'Move it away, or replace it with --overwrite. The run is paid for: the same command downloads it then.',
    })
}

/** Not the first output of its run; the extension of the first one may be open. */
export const isFurther = ({ path }: Pick<OutputFile, 'path'>, step: Active): boolean =>
  withoutExtension(path) !== withoutExtension(step.path)

const withoutExtension = (path: string): string => resolve(path).slice(0, -extname(path).length || undefined)

/** The rows that use the output were made from the bytes that the lock file knows. */
function refuseOtherBytes(
  { sha256 }: Pick<OutputFile, 'sha256'>,
  { sha256: first, outputs: further = [] }: Made,
  outputs: number,
): void {
  const isKnown = outputs === 1 + further.length
  if (!isKnown || [first, ...further.map((each) => each.sha256)].includes(sha256)) return
  throw new RushesError(
    'download_failed',
    'The output that was downloaded again has other bytes than the lock file says.',
    {
      hint: 'Run the same command again. If the service has changed the file, create the row again with --force --only.',
    },
  )
}

async function isOurs(path: string, made: Made | undefined, folder: string): Promise<boolean> {
  const known = made?.outputs?.find(({ file }) => resolve(folder, file) === resolve(path))
  return known !== undefined && (await sha256OfFile(path)) === known.sha256
}

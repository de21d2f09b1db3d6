/** Finds existing files and unwritable folders before anything is paid for. */
import { dirname, resolve } from 'node:path'
import { knownPaths } from '../../download/file-names.js'
import { obstacleAt } from '../../download/final-files.js'
import { usageError } from '../../errors.js'
import { nameProblem, reasonUnwritable } from '../../host/file-system.js'
import { fill } from '../../protocol/output-names.js'
import type { Delivery } from '../flags/delivery.js'
import { sidecarOf } from './sidecar.js'

interface CheckTargetOptions {
  readonly runs: number
  readonly kind?: string | undefined
  /** Absolute paths of earlier files of these runs, which may exist. Called when a file exists. */
  own?(): readonly string[]
}

/** Values as long as real ones, to check a path before the run exists. */
const SAMPLES = { id: `run_${'x'.repeat(20)}`, index: '1', kind: 'image', name: 'x', ext: 'jpeg' }

/** Checks the target. Throws `usage`. */
export function checkTarget(
  { target, overwrite, sidecar }: Delivery,
  { runs, kind, own = () => [] }: CheckTargetOptions,
): void {
  if (target === undefined || target.kind === 'stdout') return
  const folder = target.kind === 'folder' ? target.folder : dirname(target.template)
  // If the name of the folder depends on the run, only the part before the first placeholder is checked.
  const reason =
    reasonUnwritable(folder.replace(/[^/\\]*\{.*$/s, '') || '.') ??
    nameProblem(fill(target.kind === 'folder' ? folder : target.template, SAMPLES))
  if (reason !== undefined)
    throw usageError(
      `Cannot write outputs: ${reason}. Nothing was sent.`,
      'Choose another path with -o <path>.',
    )
  let ownPaths: ReadonlySet<string> | undefined
  const paths = knownPaths(target, runs, kind)
  for (const path of sidecar ? paths.flatMap((each) => [each, sidecarOf(each)]) : paths) {
    const obstacle = obstacleAt(path, overwrite)
    if (obstacle === undefined) continue
    ownPaths ??= new Set(own())
    if (!ownPaths.has(resolve(path))) throw usageError(`${obstacle.message}.`, obstacle.hint)
  }
}

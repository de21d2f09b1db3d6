/**
 * Moves files whose output was renamed in the manifest, before any create. All are linked beside their new names before
 * the first gets its name, so rows may change places; the links are named by their sha256, so that the next plan finds
 * them if this batch is killed. A file that a move replaces belongs to no row any more.
 *
 * The user may change files after the plan was made: each is looked at again directly before it is moved, replaced or
 * removed.
 */
import { resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { exists, type FileSystem } from '../../host/file-system.js'
import { copyOrLink, moveWithoutReplacing, removeFile, replaceFile } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import { addTo } from '../../protocol/parse.js'
import type { LockFile } from '../lock/file.js'
import { type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import { type Disk, isInPlace, mayWrite, stagedPath, unchangedHash } from '../plan/disk.js'
import type { PlanStep } from '../plan/index.js'

export interface MoveParts {
  readonly disk: Disk
  readonly lock: LockFile
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  readonly signal: AbortSignal
  readonly fileSystem?: FileSystem | undefined
}

interface Move {
  /** Name of the row, and the output as the lock file has it. */
  readonly name: string
  readonly output: LockedOutput
  /** Absolute path of the file. Undefined if a killed batch has already moved it. */
  readonly from: string | undefined
  /** Path relative to the manifest. */
  readonly to: string
  /** Absolute paths. */
  readonly target: string
  readonly staged: string
  /** What may be replaced at the new path: a file with this hash, any file, or nothing. */
  readonly replaces: string | 'any file' | undefined
}

/**
 * Moves the files. Returns the steps with their new state. Rejects with `download_failed`, or with the signal's reason.
 */
export async function moveFiles(steps: readonly PlanStep[], parts: MoveParts): Promise<readonly PlanStep[]> {
  const { disk, lock, folder, signal, fileSystem } = parts
  const moves = steps.flatMap((step) => movesOf(step, parts))
  if (moves.length === 0) return steps
  signal.throwIfAborted()
  for (const move of moves) await stage(move, fileSystem).catch(throwNotMoved(move.to))
  for (const move of moves) await place(move, fileSystem).catch(throwNotMoved(move.to))
  const byRow = new Map<string, Move[]>()
  for (const move of moves) addTo(byRow, move.name, move)
  for (const [name, own] of byRow) lock.change(name, withFiles(lock.get(name), own))
  await lock.write()
  const kept = new Set(lock.files().map((file) => disk.keyOf(file)))
  for (const { output } of moves) {
    const path = resolve(folder, output.file)
    const isLeft = !kept.has(disk.keyOf(output.file)) && disk.mayUse(output.file)
    if (isLeft && (await unchangedHash(path)) === output.sha256) await removeFile(path).catch(() => {})
  }
  return steps.map((step) => movedStep(step, byRow.get(step.entry.name), lock))
}

function movesOf(
  { action, outputs, locked, entry, flags }: PlanStep,
  { disk, folder }: MoveParts,
): readonly Move[] {
  if (action.do === 'skip' || action.do === 'conflict') return []
  return outputsOf(locked).flatMap((output, at): readonly Move[] => {
    const { file: to, fact, from } = outputs[at] ?? { file: output.file, fact: { is: 'missing' } }
    if (fact.is === 'other' || disk.isOnePath(to, output.file)) return []
    if (from === undefined && !isInPlace(fact, output.sha256)) return []
    if (from !== undefined && !mayWrite(fact, flags.overwrite)) return []
    const replaces = fact.is === 'missing' ? undefined : fact.isFree ? fact.sha256 : 'any file'
    const staged = resolve(folder, stagedPath(to, output.sha256))
    return [{ name: entry.name, output, from, to, target: resolve(folder, to), staged, replaces }]
  })
}

async function stage({ from, staged, output }: Move, fileSystem: FileSystem | undefined): Promise<void> {
  if (from === undefined) return
  if (!exists(staged)) await copyOrLink(from, staged, fileSystem)
  if ((await unchangedHash(staged)) === output.sha256) return
  await removeFile(staged)
  throw changedMeanwhile
}

async function place(
  { from, staged, target, replaces }: Move,
  fileSystem: FileSystem | undefined,
): Promise<void> {
  if (from === undefined) return
  if (replaces === undefined) return await moveWithoutReplacing(staged, target, fileSystem)
  if (replaces !== 'any file' && (await unchangedHash(target)) !== replaces) throw changedMeanwhile
  await replaceFile(staged, target)
}

const changedMeanwhile = new Error('a file was changed while this batch was starting')

const throwNotMoved = (file: string) => (error: unknown) => {
  throw new RushesError('download_failed', `Cannot write ${describeError(error, file)}. Nothing was sent.`, {
    hint: 'Check that the folder is writable and that the disk has space, then run the same command again.',
    cause: error,
  })
}

/** Renames all outputs of a row at once: one may move to the old place of another. */
function withFiles(made: Made | undefined, moves: readonly Move[]): Made | undefined {
  const moved = <Each extends LockedOutput>(each: Each): Each => {
    const { to: file = each.file } = moves.find(({ output }) => output.file === each.file) ?? {}
    return { ...each, file }
  }
  return made && { ...moved(made), ...(made.outputs && { outputs: made.outputs.map(moved) }) }
}

/** Returns the step with the state of its files after all moves. */
function movedStep(step: PlanStep, moves: readonly Move[] | undefined, lock: LockFile): PlanStep {
  if (moves === undefined) return step
  const outputs = step.outputs.map((each) => {
    const move = moves.find(({ to }) => to === each.file)
    if (move === undefined) return each
    return { ...each, fact: { is: 'file' as const, sha256: move.output.sha256 }, from: undefined }
  })
  return { ...step, locked: lock.get(step.entry.name), outputs }
}

/**
 * Moves files whose output was renamed in the manifest. Runs before any create, so that rows may swap outputs and a new
 * row may use an old name. The lock file is written after each step. If the batch is killed, the next plan finds the
 * moved files: see `elsewhere` and `known` in `plan/decide.ts`.
 */
import { resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import type { FileSystem } from '../../host/file-system.js'
import { copyOrLink, moveOver } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import type { LockKeeper } from '../lock/file.js'
import { type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import { isMovingPath, movingPath } from '../plan/disk.js'
import { type Disk, type FileFact, isInPlace, isReplaceable, type PlanStep } from '../plan/index.js'

export interface MoveParts {
  readonly disk: Disk
  readonly keeper: LockKeeper
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  readonly signal: AbortSignal
  readonly fileSystem?: FileSystem | undefined
}

interface Move {
  /** Name of the row. */
  readonly name: string
  /** Index of the output. */
  readonly at: number
  /** Path in the lock file, relative to the manifest. */
  from: string
  readonly to: string
  /** Whether a killed batch has already moved the file. */
  readonly isThere: boolean
}

/**
 * Moves the files. Returns the steps with their new state. Rejects with `download_failed`, or with the signal's reason.
 */
export async function moveFiles(steps: readonly PlanStep[], parts: MoveParts): Promise<readonly PlanStep[]> {
  const { signal, disk } = parts
  const moves = steps.flatMap((step) => movesOf(step, parts))
  if (moves.length === 0) return steps
  let remaining = moves
  while (remaining.length > 0) {
    // A cycle that has begun is completed, so that no temporary file is left.
    if (!remaining.some(({ from }) => isMovingPath(from))) signal.throwIfAborted()
    const moveByOldPath = new Map(remaining.map((move) => [disk.keyOf(move.from), move]))
    const isFree = (move: Move) =>
      move.isThere || [undefined, move].includes(moveByOldPath.get(disk.keyOf(move.to)))
    const possible = remaining.filter(isFree)
    const [first] = remaining
    if (possible.length > 0) await allSettled(possible.map((move) => carryOut(move, parts)))
    // The remaining moves form a cycle: each file is at the path of another one.
    else if (first !== undefined) await moveToTemporary(first, parts)
    remaining = remaining.filter((move) => !possible.includes(move))
  }
  return steps.map((step) => movedStep(step, parts))
}

function movesOf(step: PlanStep, { disk }: MoveParts): readonly Move[] {
  const { action, outputs, locked, entry, flags } = step
  if (action.do === 'skip' || action.do === 'conflict') return []
  return outputsOf(locked?.made).flatMap((output, at): Move[] => {
    const { file, fact } = outputs[at] ?? { file: output.file, fact: { is: 'missing' } }
    if (fact.is === 'other' || disk.isOnePath(file, output.file)) return []
    const isThere = fact.elsewhere === undefined && isInPlace(fact, output.sha256)
    const mayReplace =
      fact.is === 'missing' || isReplaceable(fact) || (flags.overwrite && fact.known === undefined)
    if (!isThere && (fact.elsewhere === undefined || !mayReplace)) return []
    return [{ name: entry.name, at, from: output.file, to: file, isThere }]
  })
}

async function carryOut(move: Move, { keeper, folder }: MoveParts): Promise<void> {
  const { from, to, isThere } = move
  if (!isThere) await moveOver(resolve(folder, from), resolve(folder, to)).catch(throwNotMoved(to))
  await record(keeper, move, to)
}

/**
 * Hard-links or copies the file to a temporary name in its new folder, so that its old name is free for another file.
 */
async function moveToTemporary(move: Move, { keeper, folder, fileSystem }: MoveParts): Promise<void> {
  const temporary = movingPath(move.to)
  await copyOrLink(resolve(folder, move.from), resolve(folder, temporary), fileSystem).catch(
    throwNotMoved(move.to),
  )
  await record(keeper, move, temporary)
  move.from = temporary
}

function record(keeper: LockKeeper, { name, at }: Move, file: string): Promise<void> {
  const entry = keeper.entry(name)
  if (entry?.made === undefined) throw new Error('only files that the lock file knows are moved')
  return keeper.set(name, { ...entry, made: withFile(entry.made, at, file) })
}

const withFile = (made: Made, at: number, file: string): Made => {
  const output = outputsOf(made)[at]
  const moved = <Each extends LockedOutput>(each: Each): Each => (each === output ? { ...each, file } : each)
  return { ...moved(made), ...(made.outputs && { outputs: made.outputs.map(moved) }) }
}

/** Returns the step with the state of its files after all moves. */
function movedStep(step: PlanStep, parts: MoveParts): PlanStep {
  const { keeper } = parts
  const moved = new Set(movesOf(step, parts).map(({ at }) => at))
  if (moved.size === 0) return step
  const locked = keeper.entry(step.entry.name)
  const known = outputsOf(locked?.made)
  const factOf = (at: number): FileFact => ({ is: 'file', sha256: known[at]?.sha256 })
  const outputs = step.outputs.map((each, at) => (moved.has(at) ? { ...each, fact: factOf(at) } : each))
  return { ...step, locked, outputs }
}

/** Rejects with the first error, after all promises have settled. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(work)) if (each.status === 'rejected') throw each.reason
}

const throwNotMoved = (file: string) => (error: unknown) => {
  throw new RushesError('download_failed', `Cannot write ${describeError(error, file)}. Nothing was sent.`, {
    hint: 'Check that the folder is writable and that the disk has space, then run the same command again.',
    cause: error,
  })
}

/**
 * Moves files whose output was renamed in the manifest, before any create. All are linked beside their new names before
 * the first gets its name, so rows may change places; the links are named by their sha256, so that the next plan finds
 * them if this batch is killed. A picture that is replaced by a move is nobody's any more.
 */
import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { exists, type FileSystem } from '../../host/file-system.js'
import {
  copyOrLink,
  moveWithoutReplacing,
  removeFile,
  replaceFile,
  targetOfTemporary,
} from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import type { LockFile } from '../lock/file.js'
import { type LockedOutput, type Made, outputsOf, ownerOfParts } from '../lock/lock.js'
import { OPEN, withoutExtension } from '../manifest/outputs.js'
import { isStagedName, unchangedHash } from '../plan/disk.js'
import { type Disk, isReplaceable, type PlanStep } from '../plan/index.js'

export interface MoveParts {
  readonly disk: Disk
  readonly lock: LockFile
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  readonly signal: AbortSignal
  readonly fileSystem?: FileSystem | undefined
}

interface Move {
  /** Name of the row, and index of the output. */
  readonly name: string
  readonly at: number
  /** Absolute path of the file. Undefined if a killed batch has already moved it. */
  readonly from: string | undefined
  /** Paths relative to the manifest. */
  readonly old: string
  readonly to: string
  readonly staged: string
  readonly sha256: string
  /** What may be replaced at the new path: a file with this hash, any file, or nothing. */
  readonly replaces: string | 'any file' | undefined
}

/**
 * Moves the files. Returns the steps with their new state. Rejects with `download_failed`, or with the signal's reason.
 */
export async function moveFiles(steps: readonly PlanStep[], parts: MoveParts): Promise<readonly PlanStep[]> {
  const { disk, lock, folder, signal } = parts
  const moves = steps.flatMap((step) => movesOf(step, parts))
  if (moves.length === 0) return steps
  signal.throwIfAborted()
  for (const move of moves) await stage(move, parts).catch(throwNotMoved(move.to))
  for (const move of moves) await place(move, parts).catch(throwNotMoved(move.to))
  for (const { name, at: index, to } of moves) {
    const made = lock.get(name)
    if (made !== undefined) lock.change(name, withFile(made, index, to))
  }
  await lock.write()
  const kept = new Set(lock.files().map((file) => disk.keyOf(file)))
  for (const { old, sha256 } of moves) {
    const path = resolve(folder, old)
    // Since the move was planned, the user may have put another file there.
    const isLeft = !kept.has(disk.keyOf(old)) && disk.mayUse(old) && (await unchangedHash(path)) === sha256
    if (isLeft) await removeFile(path).catch(() => {})
  }
  return steps.map((step) => movedStep(step, moves, lock))
}

async function stage({ from, staged, sha256 }: Move, { folder, fileSystem }: MoveParts): Promise<void> {
  if (from === undefined) return
  const path = resolve(folder, staged)
  if (!exists(path)) await copyOrLink(from, path, fileSystem)
  if ((await unchangedHash(path)) === sha256) return
  await removeFile(path)
  throw changedMeanwhile
}

/** Looks again at what exists at the new path, directly before it is replaced. */
async function place({ from, staged, to, replaces }: Move, { folder, fileSystem }: MoveParts): Promise<void> {
  if (from === undefined) return
  const [source, target] = [staged, to].map((file) => resolve(folder, file)) as [string, string]
  if (replaces === undefined) return await moveWithoutReplacing(source, target, fileSystem)
  if (replaces !== 'any file' && (await unchangedHash(target)) !== replaces) throw changedMeanwhile
  await replaceFile(source, target)
}

const changedMeanwhile = new Error('a file was changed while this batch was starting')

/**
 * Removes what a killed batch has left beside the outputs: links that no move needs, and parts of downloads. Only the
 * holder of the claim may call it.
 */
export async function removeRemains(
  steps: readonly PlanStep[],
  folder: string,
  batch: string,
): Promise<void> {
  const needed = new Set(
    steps.flatMap(({ outputs }) =>
      outputs.flatMap(({ fact }) => (fact.is === 'other' ? [] : (fact.elsewhere ?? []))),
    ),
  )
  const folders = new Set(
    steps.flatMap(({ outputs }) => outputs.map(({ file }) => dirname(resolve(folder, file)))),
  )
  const owner = ownerOfParts(batch)
  const outputs = steps.flatMap((step) => (step.action.do === 'skip' ? [] : step.outputs))
  const targets = new Set(
    outputs.flatMap(({ file, name }) => [file, name].map((each) => resolve(folder, each))),
  )
  /** The extension of an open name was known only to the download. */
  const isTarget = (path: string) => targets.has(path) || targets.has(`${withoutExtension(path)}${OPEN}`)
  for (const each of folders)
    for (const name of await readdir(each).catch(() => [])) {
      const target = targetOfTemporary(name, owner)
      const isPart = target !== undefined && isTarget(join(each, target))
      const isLink = isStagedName(name, batch) && !needed.has(join(each, name))
      if (isPart || isLink) await removeFile(join(each, name)).catch(() => {})
    }
}

function movesOf({ action, outputs, locked, entry, flags }: PlanStep, { disk }: MoveParts): readonly Move[] {
  if (action.do === 'skip' || action.do === 'conflict') return []
  return outputsOf(locked).flatMap((output, at): readonly Move[] => {
    const { file, fact } = outputs[at] ?? { file: output.file, fact: { is: 'missing' } }
    if (fact.is === 'other' || disk.isOnePath(file, output.file)) return []
    const { sha256 } = output
    const staged = disk.stagedPath(file, sha256)
    const replaces =
      fact.is === 'missing' ? undefined : isReplaceable(fact) ? fact.sha256 : ('any file' as const)
    const move = { name: entry.name, at, old: output.file, to: file, staged, sha256, replaces }
    const isThere = fact.elsewhere === undefined && fact.is === 'file' && fact.sha256 === output.sha256
    const mayReplace =
      fact.is === 'missing' || isReplaceable(fact) || (flags.overwrite && fact.known === undefined)
    if (isThere) return [{ ...move, from: undefined }]
    return fact.elsewhere === undefined || !mayReplace ? [] : [{ ...move, from: fact.elsewhere }]
  })
}

const withFile = (made: Made, at: number, file: string): Made => {
  const output = outputsOf(made)[at]
  const moved = <Each extends LockedOutput>(each: Each): Each => (each === output ? { ...each, file } : each)
  return { ...moved(made), ...(made.outputs && { outputs: made.outputs.map(moved) }) }
}

/** Returns the step with the state of its files after all moves. */
function movedStep(step: PlanStep, moves: readonly Move[], lock: LockFile): PlanStep {
  const moved = new Set(moves.filter(({ name }) => name === step.entry.name).map(({ at }) => at))
  if (moved.size === 0) return step
  const locked = lock.get(step.entry.name)
  const known = outputsOf(locked)
  const outputs = step.outputs.map((each, at) =>
    moved.has(at) ? { ...each, fact: { is: 'file' as const, sha256: known[at]?.sha256 } } : each,
  )
  return { ...step, locked, outputs }
}

const throwNotMoved = (file: string) => (error: unknown) => {
  throw new RushesError('download_failed', `Cannot write ${describeError(error, file)}. Nothing was sent.`, {
    hint: 'Check that the folder is writable and that the disk has space, then run the same command again.',
    cause: error,
  })
}

/**
 * Outputs that have another name in the manifest now: their files are moved to it before anything is created, so that rows
 * may swap their outputs, and a new row may take a name. The lock file says after each step where the files are, and the next
 * plan finds those that a killed batch has moved: see `elsewhere` and `known` in `plan/facts.ts`.
 */
import { randomBytes } from 'node:crypto'
import { posix, resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { copyOrLink, moveOver } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import type { LockKeeper } from '../lock/file.js'
import { type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import { type Disk, type FileFact, isInPlace, isReplaceable, type PlanStep } from '../plan/index.js'

export interface MoveParts {
  readonly disk: Pick<Disk, 'keyOf'>
  readonly keeper: LockKeeper
  /** Absolute: the manifest's. */
  readonly folder: string
  readonly signal: AbortSignal
}

interface Move {
  /** Of the row. */
  readonly name: string
  /** Index of the output. */
  readonly at: number
  /** Relative to the manifest, as the lock file has it. */
  from: string
  readonly to: string
  /** A killed batch has moved the file already. */
  readonly isThere: boolean
}

/** The steps with their files in place. Throws `download_failed`, and the signal's reason. */
export async function moveFiles(steps: readonly PlanStep[], parts: MoveParts): Promise<readonly PlanStep[]> {
  const { signal, disk } = parts
  const moves = steps.flatMap((step) => movesOf(step, parts))
  if (moves.length === 0) return steps
  let open = moves
  while (open.length > 0) {
    signal.throwIfAborted()
    const taken = new Map(open.map((move) => [disk.keyOf(move.from), move]))
    const isFree = (move: Move) => move.isThere || [undefined, move].includes(taken.get(disk.keyOf(move.to)))
    const free = open.filter(isFree)
    const [first] = open
    if (free.length > 0) await all(free.map((move) => carryOut(move, parts)))
    // Each is in the way of the next.
    else if (first !== undefined) await makeWay(first, parts)
    open = open.filter((move) => !free.includes(move))
  }
  return steps.map((step) => movedStep(step, parts))
}

function movesOf(step: PlanStep, { disk }: MoveParts): readonly Move[] {
  const { action, outputs, locked, entry, flags } = step
  if (action.do === 'skip' || action.do === 'conflict') return []
  return outputsOf(locked?.made).flatMap((output, at): Move[] => {
    const { file, fact } = outputs[at] ?? { file: output.file, fact: { is: 'missing' } }
    if (fact.is === 'other' || disk.keyOf(file) === disk.keyOf(output.file)) return []
    const isThere = fact.elsewhere === undefined && isInPlace(fact, output.sha256)
    const mayReplace =
      fact.is === 'missing' || isReplaceable(fact) || (flags.overwrite && fact.known === undefined)
    if (!isThere && (fact.elsewhere === undefined || !mayReplace)) return []
    return [{ name: entry.name, at, from: output.file, to: file, isThere }]
  })
}

async function carryOut(move: Move, { keeper, folder }: MoveParts): Promise<void> {
  const { from, to, isThere } = move
  if (!isThere) await moveOver(resolve(folder, from), resolve(folder, to)).catch(notMoved(to))
  await record(keeper, move, to)
}

/** Its file gets a second name for the meantime, in the folder where it is going; the first one is then free for another. */
async function makeWay(move: Move, { keeper, folder }: MoveParts): Promise<void> {
  const { dir, name, ext } = posix.parse(move.to)
  // A free name: nothing is replaced here.
  const meanwhile = posix.join(dir, `.${name}.${randomBytes(6).toString('hex')}.moving${ext}`)
  await copyOrLink(resolve(folder, move.from), resolve(folder, meanwhile)).catch(notMoved(move.to))
  await record(keeper, move, meanwhile)
  move.from = meanwhile
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

/** What the files are after all of them have moved. */
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

/** Rejects when all have ended. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(work)) if (each.status === 'rejected') throw each.reason
}

const notMoved = (file: string) => (error: unknown) => {
  throw new RushesError('download_failed', `Cannot write ${describeError(error, file)}. Nothing was sent.`, {
    hint: 'Check that the folder is writable and that the disk has space, then run the same command again.',
    cause: error,
  })
}

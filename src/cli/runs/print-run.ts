/** Prints runs in order: each one as soon as all earlier ones are printed. */
import type { Target } from '../../download/file-names.js'
import { printable } from '../../protocol/text.js'
import type { KnownRun, Run } from '../../runs/run.js'
import type { Context } from '../context/context.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'

export interface PrintOptions {
  readonly target: Target | undefined
  /** Whether the command waited for the run. */
  readonly isFollowed: boolean
}

export function printRun({ out }: Context, record: RunRecord, options: PrintOptions): void {
  if (out.mode.json) out.json(runJson(record))
  else for (const line of linesOf(record, options)) out.line(printable(line))
}

/** The id, the paths of the files, or the URLs. */
export function linesOf(record: RunRecord, { target, isFollowed }: PrintOptions): readonly string[] {
  if (!isFollowed) return [record.id]
  if (target?.kind === 'stdout') return []
  if (target !== undefined) return record.files.map(({ path }) => path)
  return record.state?.phase === 'succeeded' ? record.state.urls : []
}

/** Returns the record of a run that the command does not wait for. */
export const recordOf = ({ id, kind, model, service, createdAt, elapsedMs }: KnownRun): RunRecord => ({
  id,
  kind,
  model,
  state: undefined,
  service,
  files: [],
  error: undefined,
  createdAt,
  finishedAt: undefined,
  elapsedMs,
})

/** Returns a function to call once with each item, with its index counted from 0. */
export function inOrder<Item>(print: (item: Item) => void): (index: number, item: Item | undefined) => void {
  const waiting = new Map<number, Item | undefined>()
  let next = 0
  return (index, item) => {
    waiting.set(index, item)
    for (; waiting.has(next); next++) {
      const ready = waiting.get(next)
      waiting.delete(next)
      if (ready !== undefined) print(ready)
    }
  }
}

/** Warns once if the service gives one id to two creates: there is one run, and one set of outputs. */
export function createRepeatedIds({ out }: Context): (run: Run) => void {
  let isWarned = false
  return ({ isRepeated, id }) => {
    if (!isRepeated || isWarned) return
    isWarned = true
    out.warn(
      `The service gave one id to two creates: ${printable(id)}. Both may be charged, but there is one run.`,
    )
  }
}

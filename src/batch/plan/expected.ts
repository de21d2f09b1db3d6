/** Estimates how long a plan will take, pure: the least by the rate limit, and with the usual durations of the models. */
import type { Step } from './index.js'
import { chainsBehind, dependentsOf, type RowNode } from './row-order.js'

export interface Expectation {
  /** What the limit alone takes, if every run were done at once. */
  readonly leastMs: number
  /** Undefined when a duration is not known, and when nothing is to be created. */
  readonly expectedMs: number | undefined
}

export interface Pace {
  /** Requests per window. */
  readonly requests: number
  readonly windowMs: number
  /** The most runs in flight at once; undefined: no cap. */
  readonly concurrency: number | undefined
  /** How long a run of the model usually takes; undefined when that is not known. */
  usualMs(model: string): number | undefined
}

type Planned = Pick<Step, 'action' | 'model'> & Partial<Pick<Step, 'entry' | 'sources'>>

/** `requests`: the least that the plan needs. */
export function expectationOf(steps: readonly Planned[], requests: number, pace: Pace): Expectation {
  const windowOf = (request: number) => Math.floor(request / pace.requests) * pace.windowMs
  const leastMs = requests === 0 ? 0 : windowOf(requests - 1)
  const usual = steps.flatMap((step, at): TimedRow[] => {
    if (step.action.do !== 'create') return []
    const ms = step.model === undefined ? undefined : pace.usualMs(step.model)
    return [{ name: step.entry?.name ?? String(at), sources: step.sources ?? [], ms }]
  })
  const isKnown = usual.length > 0 && usual.every(({ ms }) => ms !== undefined)
  if (!isKnown) return { leastMs, expectedMs: undefined }
  /** When each run in flight ends; under a cap the next one waits for the first of them. */
  const ends: number[] = []
  let created = 0
  let lastMs = leastMs
  const queue = createQueue(usual)
  for (let nowMs = 0; ; nowMs = Math.max(nowMs, windowOf(created))) {
    const isFull = pace.concurrency !== undefined && ends.length >= pace.concurrency
    const freeMs = Math.max(nowMs, isFull ? (ends.shift() ?? 0) : 0)
    const next = queue.take(freeMs)
    if (next === undefined) return { leastMs, expectedMs: lastMs }
    nowMs = Math.max(freeMs, next.readyMs)
    created++
    const endMs = nowMs + (next.row.ms ?? 0)
    queue.end(next.row, endMs)
    insert(ends, endMs, (end) => end)
    lastMs = Math.max(lastMs, endMs)
  }
}

interface TimedRow extends RowNode {
  readonly ms: number | undefined
}

interface ReadyRow {
  readonly row: TimedRow
  readonly behind: number
  readonly readyMs: number
}

/** The rows that can be created: of those that are ready, the one with the longest chain behind it comes first. */
function createQueue(rows: readonly TimedRow[]) {
  const names = new Set(rows.map(({ name }) => name))
  const dependents = dependentsOf(rows)
  const chains = chainsBehind(rows)
  const open = new Map(
    rows.map(({ name, sources }) => [name, sources.filter((each) => names.has(each)).length]),
  )
  const endsMs = new Map<string, number>()
  const ready: ReadyRow[] = []
  /** By the time at which they are ready. */
  const later: ReadyRow[] = []
  const readyRow = (row: TimedRow, readyMs: number): ReadyRow => ({
    row,
    behind: chains.get(row.name) ?? 0,
    readyMs,
  })
  const add = (each: ReadyRow) => insert(ready, each, ({ behind }) => -behind)
  for (const row of rows) if (open.get(row.name) === 0) add(readyRow(row, 0))
  return {
    take(nowMs: number): ReadyRow | undefined {
      while (later[0] !== undefined && (later[0].readyMs <= nowMs || ready.length === 0))
        add(later.shift() as ReadyRow)
      return ready.shift()
    },
    end({ name }: TimedRow, endMs: number): void {
      for (const row of dependents.get(name) ?? []) {
        const left = (open.get(row.name) ?? 0) - 1
        const readyMs = Math.max(endsMs.get(row.name) ?? 0, endMs)
        open.set(row.name, left)
        endsMs.set(row.name, readyMs)
        if (left === 0) insert(later, readyRow(row, readyMs), (each) => each.readyMs)
      }
    },
  }
}

/** Inserts into a list that is sorted by a number, after equal ones. */
function insert<Item>(list: Item[], item: Item, by: (item: Item) => number): void {
  const at = list.findLastIndex((each) => by(each) <= by(item))
  list.splice(at + 1, 0, item)
}

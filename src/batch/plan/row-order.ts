/**
 * Orders rows that use other rows, and estimates their duration. Pure. Not recursive: a chain may have thousands of
 * rows.
 */

export interface RowNode {
  readonly name: string
  /** Names of the rows that it uses. Names of rows outside the list are ignored. */
  readonly sources: readonly string[]
}

/** Groups rows into levels. Each row is in a later level than the rows that it uses. Keeps the order within a level. */
export function levelsOf<Row extends RowNode>(rows: readonly Row[]): readonly (readonly Row[])[] {
  const dependents = dependentsOf(rows)
  const names = new Set(rows.map(({ name }) => name))
  const open = new Map(
    rows.map(({ name, sources }) => [name, sources.filter((each) => names.has(each)).length]),
  )
  const levels: Row[][] = []
  let level = rows.filter(({ name }) => open.get(name) === 0)
  while (level.length > 0) {
    levels.push(level)
    const next: Row[] = []
    for (const { name } of level)
      for (const dependent of dependents.get(name) ?? []) {
        const left = (open.get(dependent.name) ?? 0) - 1
        open.set(dependent.name, left)
        if (left === 0) next.push(dependent)
      }
    level = next
  }
  return levels
}

/** Returns the rows that use each row. */
export function dependentsOf<Row extends RowNode>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const dependents = new Map<string, Row[]>()
  for (const row of rows)
    for (const source of row.sources) {
      const known = dependents.get(source)
      if (known === undefined) dependents.set(source, [row])
      else known.push(row)
    }
  return dependents
}

/** Returns the length of the longest chain of rows that wait for each row. 0 if no row waits. */
export function chainLengths(rows: readonly RowNode[]): ReadonlyMap<string, number> {
  const lengths = new Map<string, number>()
  for (const level of [...levelsOf(rows)].reverse())
    for (const { name, sources } of level)
      for (const source of sources)
        lengths.set(source, Math.max(lengths.get(source) ?? 0, (lengths.get(name) ?? 0) + 1))
  return lengths
}

/** Returns the names of these rows and of all rows that they need. */
export function withSources(rows: readonly RowNode[], names: Iterable<string>): ReadonlySet<string> {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const found = new Set(names)
  for (const name of found) for (const source of byName.get(name)?.sources ?? []) found.add(source)
  return found
}

export interface Expectation {
  /** Minimum duration under the rate limit, if every run took no time. */
  readonly leastMs: number
  /** Undefined if a duration is unknown, or if there are no creates. */
  readonly expectedMs: number | undefined
}

interface Pace {
  /** Number of requests per window. */
  readonly requests: number
  readonly windowMs: number
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency: number | undefined
  /** Returns the typical duration of a model's runs. Undefined if unknown. */
  usualMs(model: string): number | undefined
}

interface CreateStep {
  readonly action: { readonly do: string }
  readonly model: string | undefined
  readonly entry?: { readonly name: string }
  readonly sources?: readonly string[]
}

/**
 * Estimates the duration of a plan. `requests`: minimum number of requests. Uses the longest of three bounds: the
 * longest chain of rows; the window of the last create plus the slowest run; and, with `concurrency`, the number of
 * rounds. Printed as `about 40 s`, so an exact simulation is not needed.
 */
export function expectationOf(steps: readonly CreateStep[], requests: number, pace: Pace): Expectation {
  const windowOf = (request: number) => Math.floor(request / pace.requests) * pace.windowMs
  const leastMs = requests === 0 ? 0 : windowOf(requests - 1)
  const rows = steps.flatMap((step, at) => {
    if (step.action.do !== 'create') return []
    const usualMs = step.model === undefined ? undefined : pace.usualMs(step.model)
    return [{ name: step.entry?.name ?? String(at), sources: step.sources ?? [], usualMs }]
  })
  const durations = rows.flatMap(({ usualMs }) => usualMs ?? [])
  if (rows.length === 0 || durations.length < rows.length) return { leastMs, expectedMs: undefined }
  const slowestMs = durations.reduce((a, b) => Math.max(a, b), 0)
  const meanMs = durations.reduce((a, b) => a + b, 0) / rows.length
  const endsMs = new Map<string, number>()
  let chainMs = 0
  for (const { name, sources, usualMs = 0 } of levelsOf(rows).flat()) {
    const endMs = usualMs + Math.max(0, ...sources.map((source) => endsMs.get(source) ?? 0))
    endsMs.set(name, endMs)
    chainMs = Math.max(chainMs, endMs)
  }
  const lastMs = windowOf(rows.length - 1) + slowestMs
  const cappedMs = pace.concurrency === undefined ? 0 : Math.ceil(rows.length / pace.concurrency) * meanMs
  return { leastMs, expectedMs: Math.max(leastMs, chainMs, lastMs, cappedMs) }
}

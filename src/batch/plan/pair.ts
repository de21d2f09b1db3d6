/** Assigns entries of the lock file to runs of the manifest, and finds the model of each run. Pure. */
import { KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import type { Lock, LockEntry, Pending } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Models } from '../manifest/sections.js'
import { hashOfRow, type RowAction } from './decide.js'

export interface Paired {
  readonly entry: ManifestEntry
  readonly locked: LockEntry | undefined
  readonly model: string | undefined
  /** Undefined if the model or meaning is unknown. */
  readonly hash: string | undefined
}

interface Unpaired {
  readonly entry: ManifestEntry
  /** Undefined until the outputs that the row uses are known. */
  readonly meaning: ModelInput | undefined
  readonly former?: ModelInput | undefined
}

export type Pairing = ReturnType<typeof createPairing>

interface PairOptions {
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** Models in the settings. The models of the manifest come first, and those of the lock file last. */
  readonly models: Models
  /** Returns the same text for the same model and input. */
  identity(model: string, input: unknown): string
  /** Whether `--only` selects the run. Other runs keep their entries. */
  isSelected(entry: ManifestEntry): boolean
}

/**
 * Assigns entries by name. A run without an entry, or whose entry has a different input, takes an unassigned entry with
 * its own model and input: the run was renamed, or rows have swapped names, and it is not paid again. (A run without a
 * name is named after its output, so moving the file renames the run.)
 */
export function createPairing({ entries, lock, models, identity, isSelected }: PairOptions) {
  const names = new Set(entries.map(({ name }) => name))
  /** `unclaimed`: names of entries that a run may take. `taken`: names of entries that a run has taken. */
  const unclaimed = new Set([...lock.entries.keys()].filter((name) => !names.has(name)))
  const taken = new Set<string>()
  /** Rows whose level is not paired yet. */
  const waiting = new Map(entries.map((entry) => [entry.name, entry]))
  const recorded = recordedModels(lock)
  const renamed: { from: string; to: string }[] = []
  const hashes = new Map<unknown, string>()
  const hashOf = (model: string, meaning: unknown): string => {
    // All runs of a row share the `meaning` object.
    const known = hashes.get(meaning) ?? identity(model, meaning)
    hashes.set(meaning, known)
    return known
  }
  const byHash = new Map<string, string[]>()
  for (const [name, entry] of lock.entries)
    for (const hash of hashesOf(entry)) byHash.set(hash, [...(byHash.get(hash) ?? []), name])

  const own = (name: string) => (taken.has(name) ? undefined : lock.entries.get(name))

  function read<Row extends Unpaired>(row: Row): Row & Paired {
    const { entry, meaning, former } = row
    const model = entry.model ?? modelFor(entry.kind, { models, own: lock.entries.get(entry.name), recorded })
    const locked = own(entry.name)
    const hash =
      model === undefined || meaning === undefined
        ? undefined
        : hashOfRow({ meaning, former }, locked, (each) => hashOf(model, each))
    return { ...row, locked, model, hash }
  }

  function mayTake({ entry, locked, hash }: Paired): boolean {
    if (hash === undefined) return false
    return locked === undefined || (isSelected(entry) && !hashesOf(locked).has(hash))
  }

  /** Whether a row that waits for other rows has a different input: anything but its images differs. */
  function isOfAnotherInput(name: string, entry: ManifestEntry): boolean {
    const row = waiting.get(name)
    return row !== undefined && isSelected(row) && !haveOneText(row, entry)
  }

  function findUnclaimed({ entry, hash = '' }: Paired): string | undefined {
    const isAvailable = (name: string) =>
      isSelected(entry)
        ? unclaimed.has(name) || (!taken.has(name) && isOfAnotherInput(name, entry))
        : unclaimed.has(name) && !names.has(name)
    return byHash.get(hash)?.find(isAvailable)
  }

  function take(name: string): LockEntry | undefined {
    const entry = own(name)
    unclaimed.delete(name)
    taken.add(name)
    return entry
  }

  /**
   * Returns a free name for an entry whose run has taken another entry. The entry is kept until its file is replaced.
   */
  function unusedName(name: string): string {
    let unused = name
    while (names.has(unused) || (unused !== name && lock.entries.has(unused))) unused = `${unused} (former)`
    return unused
  }

  return {
    /** Pairs the rows of one level. The levels of the rows that they use must be paired first. */
    pair<Row extends Unpaired>(rows: readonly Row[]): readonly (Row & Paired)[] {
      for (const { entry } of rows) waiting.delete(entry.name)
      const readRows = rows.map((row) => read(row))
      const unpaired = new Set(readRows.filter(mayTake))
      for (const { entry, locked } of unpaired) if (locked !== undefined) unclaimed.add(entry.name)
      const found = readRows.map((row) => {
        const from = unpaired.has(row) ? findUnclaimed(row) : undefined
        if (from === undefined) return row
        unpaired.delete(row)
        renamed.push({ from, to: row.entry.name })
        return { ...row, locked: take(from) }
      })
      return found.map((row) => (unpaired.has(row) ? { ...row, locked: take(row.entry.name) } : row))
    },
    /** Returns the entries that belong to no run of the manifest. */
    leftover: (): ReadonlyMap<string, LockEntry> =>
      new Map(
        [...unclaimed].flatMap((name) => {
          const entry = own(name)
          return entry === undefined ? [] : [[unusedName(name), entry] as const]
        }),
      ),
    renamed,
  }
}

const hashesOf = ({ made, pending }: LockEntry): ReadonlySet<string> =>
  new Set([made?.hash, pending?.hash].filter((hash) => hash !== undefined))

/** Whether two rows differ only in their images. */
function haveOneText(a: ManifestEntry, b: ManifestEntry): boolean {
  const textOf = ({ kind, input: { image_urls: _, ...others } }: ManifestEntry) =>
    JSON.stringify([kind, Object.entries(others).sort(([x], [y]) => (x < y ? -1 : 1))])
  return textOf(a) === textOf(b)
}

interface ModelSources {
  readonly models: Models
  readonly own: LockEntry | undefined
  readonly recorded: Models
}

function modelFor(kind: Kind | undefined, { models, own, recorded }: ModelSources): string | undefined {
  if (kind === undefined) return undefined
  const last = [own?.made, own?.pending].find((each) => each?.kind === kind)
  return models[kind] ?? last?.model ?? recorded[kind]
}

/** Returns the model of each kind for which the lock file has only one model. New rows use it too. */
export function recordedModels({ entries }: Pick<Lock, 'entries'>): Models {
  const found: Partial<Record<Kind, string>> = {}
  for (const kind of KINDS) {
    const models = new Set(
      [...entries.values()].flatMap(({ made }) => (made?.kind === kind ? [made.model] : [])),
    )
    const [only] = models
    if (models.size === 1 && only !== undefined) found[kind] = only
  }
  return found
}

/** A run in the lock file that may be paid for, but that no row of the plan uses. The user is warned about it. */
export interface LeftRun {
  /** Name of the row. */
  readonly name: string
  /** Id of the run. Undefined if the outcome of its create is unknown. */
  readonly run: string | undefined
  /** Key of the journal row, for a create with an unknown outcome. */
  readonly key: string | undefined
  /** Address of the service. */
  readonly service: string | undefined
  /** `waiting`: the row has changed, unless the outputs that it uses are created again with the same bytes. */
  readonly why: 'changed' | 'waiting' | 'forced' | 'removed'
}

interface DecidedRow extends Paired {
  readonly action: RowAction
  readonly waitsFor: readonly string[]
}

/** Finds these runs. `leftover`: entries that belong to no row of the manifest. */
export function leftRunsOf(
  steps: readonly DecidedRow[],
  leftover: ReadonlyMap<string, LockEntry>,
): readonly LeftRun[] {
  return [
    ...steps.flatMap((step) => {
      const why = whyLeft(step)
      const pending = step.locked?.pending
      return why === undefined || pending === undefined ? [] : [leftRun(step.entry.name, pending, why)]
    }),
    ...[...leftover].flatMap(([name, { pending }]) =>
      pending === undefined ? [] : [leftRun(name, pending, 'removed')],
    ),
  ]
}

function whyLeft({ action, hash, locked, waitsFor }: DecidedRow): LeftRun['why'] | undefined {
  const { pending } = locked ?? {}
  if (pending === undefined) return undefined
  if (action.do === 'create' && action.why === 'unconfirmed') return undefined
  if (action.do === 'create') {
    if (waitsFor.length > 0) return 'waiting'
    return pending.hash === hash ? 'forced' : 'changed'
  }
  const isOther = action.do === 'up_to_date' || (action.do === 'download' && action.why !== 'unfinished')
  return isOther ? 'changed' : undefined
}

const leftRun = (name: string, pending: Pending, why: LeftRun['why']): LeftRun => ({
  name,
  run: pending.state === 'accepted' ? pending.run : undefined,
  key: pending.state === 'unconfirmed' ? pending.key : undefined,
  service: pending.service,
  why,
})

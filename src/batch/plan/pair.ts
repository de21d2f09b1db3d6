/** Assigns entries of the lock file to runs of the manifest, and finds the model of each run. Pure. */
import { posix } from 'node:path'
import { sameFileKey } from '../../host/file-system.js'
import { writeJson } from '../../protocol/json.js'
import { addTo } from '../../protocol/lists.js'
import { KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { hashesOf, type Lock, type LockEntry } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Models } from '../manifest/sections.js'

export interface Paired {
  readonly entry: ManifestEntry
  readonly locked: LockEntry | undefined
  readonly model: string | undefined
  /** Undefined if the model or identity input is unknown. */
  readonly hash: string | undefined
}

interface Unpaired {
  readonly entry: ManifestEntry
  /** Undefined until the outputs that the row uses are known. */
  readonly identityInput: ModelInput | undefined
  readonly undocumentedInput?: ModelInput | undefined
}

export interface Pairing {
  /** Pairs the rows of one level. The levels of the rows that they use must be paired first. */
  pair<Row extends Unpaired>(rows: readonly Row[]): readonly (Row & Paired)[]
  /** Returns the entries that no run has taken, under names that no run has. They are kept until their files are replaced. */
  leftover(): ReadonlyMap<string, LockEntry>
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
}

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
 * Assigns entries by name. A run without an entry, or whose entry has a different input, takes a free entry with its own
 * model and input: the run was renamed, or rows have swapped names, and it is not paid again. (A run without a name is
 * named after its output, so moving the file renames the run.) `match` chooses among several such entries.
 */
export function createPairing({ entries, lock, models, identity, isSelected }: PairOptions): Pairing {
  const names = new Set(entries.map(({ name }) => name))
  /** Entries that no run has taken. */
  const free = new Map(lock.entries)
  /** Rows whose level is not paired yet. */
  const waiting = new Map(entries.map((entry) => [entry.name, entry]))
  const byHash = candidatesByHash(lock, names)
  const modelsOf = modelsIn(lock, models)
  const hashOf = remembered(identity)
  const renamed: { from: string; to: string }[] = []

  /** Returns the hashes that the run may have, by model. */
  function readingsOf({ entry, identityInput, undocumentedInput }: Unpaired, locked: LockEntry | undefined) {
    const inputs = [identityInput, undocumentedInput].filter((each) => each !== undefined)
    return modelsOf
      .possible(entry, locked)
      .flatMap((model) => inputs.map((each) => ({ model, hash: hashOf(model, each) })))
  }

  function paired<Row extends Unpaired>(row: Row, locked: LockEntry | undefined): Row & Paired {
    const known = hashesOf(locked)
    const reading = readingsOf(row, locked).find(({ hash }) => known.includes(hash))
    if (reading !== undefined) return { ...row, locked, ...reading }
    const model = modelsOf.one(row.entry, locked)
    const hash =
      model === undefined || row.identityInput === undefined ? undefined : hashOf(model, row.identityInput)
    return { ...row, locked, model, hash }
  }

  function keepsOwn(row: Unpaired, hashes: readonly string[]): boolean {
    const own = free.get(row.entry.name)
    if (hashes.length === 0) return true
    return (
      own !== undefined && (!isSelected(row.entry) || hashesOf(own).some((hash) => hashes.includes(hash)))
    )
  }

  const candidatesOf = (hash: string) => byHash.get(hash)?.filter(({ name }) => free.has(name)) ?? []

  /** Whether the run may take the entry of another name. A row that waits may still have the input of its entry. */
  function mayTake({ entry }: Unpaired, { name, isRemoved }: Candidate): boolean {
    if (!isSelected(entry)) return isRemoved
    const row = waiting.get(name)
    return row === undefined || (isSelected(row) && !haveOneText(row, entry))
  }

  return {
    pair<Row extends Unpaired>(rows: readonly Row[]): readonly (Row & Paired)[] {
      for (const { entry } of rows) waiting.delete(entry.name)
      const taken = new Map<Row, string>()
      const seekers: Seeker<Row>[] = []
      for (const row of rows) {
        const { entry } = row
        const hashes = readingsOf(row, free.get(entry.name)).map(({ hash }) => hash)
        if (keepsOwn(row, hashes)) taken.set(row, entry.name)
        else seekers.push({ row, hashes, traits: traitsOf(entry.output, entry.variant) })
      }
      const found = new Map([...taken].map(([row, name]) => [row, free.get(name)]))
      for (const name of taken.values()) free.delete(name)
      for (const [row, { name }] of match(seekers, candidatesOf, mayTake)) {
        found.set(row, free.get(name))
        free.delete(name)
        renamed.push({ from: name, to: row.entry.name })
      }
      for (const { row } of seekers) {
        if (found.has(row)) continue
        found.set(row, free.get(row.entry.name))
        free.delete(row.entry.name)
      }
      return rows.map((row) => paired(row, found.get(row)))
    },
    leftover: () => new Map([...free].map(([name, entry]) => [unusedName(name, names, lock), entry])),
    renamed,
  }
}

function unusedName(name: string, names: ReadonlySet<string>, lock: Lock): string {
  let unused = name
  while (names.has(unused) || (unused !== name && lock.entries.has(unused))) unused = `${unused} (former)`
  return unused
}

/** Calls `identity` once for each model and input: all runs of a row share the object of their identity input. */
function remembered(identity: PairOptions['identity']): PairOptions['identity'] {
  const byModel = new Map<string, Map<unknown, string>>()
  return (model, input) => {
    const hashes = byModel.get(model) ?? new Map<unknown, string>()
    byModel.set(model, hashes)
    const hash = hashes.get(input) ?? identity(model, input)
    hashes.set(input, hash)
    return hash
  }
}

/** Facts that tell runs of the same input apart. */
interface Traits {
  /** Path of the output without its extension. */
  readonly path: string
  readonly file: string
  readonly variant: number
}

function traitsOf(output: string, variant: number): Traits {
  const path = output.replace(/\.[^./]*$/, '')
  return { path, file: sameFileKey(posix.basename(path)), variant }
}

interface Candidate {
  readonly name: string
  readonly traits: Traits
  /** Place in the old order of the manifest. */
  readonly place: number
  /** Whether no run of the manifest has this name. */
  readonly isRemoved: boolean
}

function candidatesByHash({ entries, rows }: Lock, names: ReadonlySet<string>) {
  const found = new Map<string, Candidate[]>()
  const ordered = [...new Set([...rows.keys(), ...entries.keys()])]
  for (const [place, name] of ordered.entries()) {
    const entry = entries.get(name)
    const traits = traitsOf(entry?.made?.file ?? name, rows.get(name) ?? 1)
    const candidate = { name, traits, place, isRemoved: !names.has(name) }
    for (const hash of hashesOf(entry)) addTo(found, hash, candidate)
  }
  return found
}

interface Seeker<Row> {
  readonly row: Row
  readonly hashes: readonly string[]
  readonly traits: Traits
}

/** From the strongest sign that two runs are one to the weakest: at the end only the order of the manifest is left. */
const SIGNS: readonly ((traits: Traits) => string | number)[] = [
  ({ path }) => path,
  ({ variant, file }) => `${variant} ${file}`,
  ({ file }) => file,
  ({ variant }) => variant,
  () => '',
]

/** Finds an entry with the input of each run. Equal bytes are not a sign: two runs may have made the same file. */
function match<Row>(
  seekers: readonly Seeker<Row>[],
  candidatesOf: (hash: string) => readonly Candidate[],
  mayTake: (row: Row, candidate: Candidate) => boolean,
): ReadonlyMap<Row, Candidate> {
  const found = new Map<Row, Candidate>()
  const taken = new Set<Candidate>()
  const candidates = [...new Set(seekers.flatMap(({ hashes }) => hashes))].flatMap((hash) => {
    const withHash = candidatesOf(hash)
    return withHash.length === 0 ? [] : [[hash, withHash] as const]
  })
  if (candidates.length === 0) return found
  for (const signOf of SIGNS) {
    const lists = new Map<string, Candidate[]>()
    for (const [hash, withHash] of candidates)
      for (const candidate of withHash)
        if (!taken.has(candidate)) addTo(lists, `${hash} ${signOf(candidate.traits)}`, candidate)
    for (const list of lists.values()) list.sort(byPreference)
    for (const { row, hashes, traits } of seekers) {
      if (found.has(row)) continue
      const possible = hashes.flatMap(
        (hash) =>
          firstOf(lists.get(`${hash} ${signOf(traits)}`) ?? [], taken, (each) => mayTake(row, each)) ?? [],
      )
      const [best] = possible.sort(byPreference)
      if (best === undefined) continue
      found.set(row, best)
      taken.add(best)
    }
  }
  return found
}

/** An entry whose name is gone comes first: one whose name remains may belong to a run that was edited. */
const byPreference = (a: Candidate, b: Candidate): number =>
  Number(b.isRemoved) - Number(a.isRemoved) || a.place - b.place

/** Drops taken candidates from the front of the list: with 10,000 runs of one input, each search would pass them all. */
function firstOf(
  list: Candidate[],
  taken: ReadonlySet<Candidate>,
  isPossible: (candidate: Candidate) => boolean,
): Candidate | undefined {
  while (list[0] !== undefined && taken.has(list[0])) list.shift()
  return list.find((each) => !taken.has(each) && isPossible(each))
}

function modelsIn(lock: Lock, models: Models) {
  const recorded = recordedModels(lock)
  const used = [...lock.entries.values()].flatMap(runsOf)
  const usedOf = new Map(
    KINDS.map((kind) => [kind, new Set(used.filter((each) => each.kind === kind).map(({ model }) => model))]),
  )
  const chosen = ({ model, kind }: ManifestEntry) => model ?? (kind && models[kind])
  const lockedModels = ({ kind }: ManifestEntry, locked: LockEntry | undefined) =>
    runsOf(locked).flatMap((each) => (kind !== undefined && each.kind === kind ? [each.model] : []))
  return {
    /** Returns the models that a run of the lock file may have, if it is this run. */
    possible(entry: ManifestEntry, locked: LockEntry | undefined): readonly string[] {
      const model = chosen(entry)
      if (model !== undefined) return [model]
      const { kind } = entry
      return [...new Set([...lockedModels(entry, locked), ...((kind && usedOf.get(kind)) ?? [])])]
    },
    /** Returns the model of the next create. */
    one: (entry: ManifestEntry, locked: LockEntry | undefined): string | undefined =>
      chosen(entry) ?? lockedModels(entry, locked)[0] ?? (entry.kind && recorded[entry.kind]),
  }
}

const runsOf = (entry: LockEntry | undefined) =>
  [entry?.made, entry?.pending].filter((each) => each !== undefined)

/** Whether two rows differ only in their images. */
function haveOneText(a: ManifestEntry, b: ManifestEntry): boolean {
  const textOf = ({ kind, input: { image_urls: _, ...others } }: ManifestEntry) =>
    writeJson([kind, Object.entries(others).sort(([x], [y]) => (x < y ? -1 : 1))])
  return textOf(a) === textOf(b)
}

/** Returns the model of each kind for which the lock file has only one model. New rows use it too. */
export function recordedModels({ entries }: Lock): Models {
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

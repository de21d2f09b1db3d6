/**
 * Assigns entries of the lock file, and runs in flight, to runs of the manifest, and finds the model of each run. Pure.
 *
 * By name, if the entry has the model and input of the run. A run without such an entry was renamed, or rows have swapped
 * their names: it takes the first free entry of its own model and input, in the order of the lock file, each once.
 */
import { identityOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import { addTo } from '../../protocol/lists.js'
import { KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import type { Lock, Made } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Models } from '../manifest/sections.js'
import type { Flight } from './flights.js'

export interface Paired {
  readonly entry: ManifestEntry
  readonly locked: Made | undefined
  /** A create of the same model and input that the lock file does not have. */
  readonly flight: Flight | undefined
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

interface PairOptions {
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** Newest first. */
  readonly flights: readonly Flight[]
  /** Models in the settings. The models of the manifest come first, and those of the lock file last. */
  readonly models: Models
  /** Whether `--only` selects the run. Other runs keep their entries. */
  isSelected(entry: ManifestEntry): boolean
}

interface Reading {
  readonly model: string
  readonly hash: string
}

export class Pairing {
  readonly renamed: { readonly from: string; readonly to: string }[] = []
  readonly #options: PairOptions
  readonly #names: ReadonlySet<string>
  /** Entries that no run has taken. */
  readonly #free: Map<string, Made>
  readonly #byHash = new Map<string, string[]>()
  readonly #flights: Set<Flight>
  readonly #flightsByHash = new Map<string, Flight[]>()
  /** Rows whose level is not paired yet. */
  readonly #waiting: Map<string, ManifestEntry>
  readonly #models: readonly { readonly kind?: Kind | undefined; readonly model: string }[]
  readonly #hashes = new Map<unknown, Map<string, string>>()

  constructor(options: PairOptions) {
    const { entries, lock, flights } = options
    this.#options = options
    this.#names = new Set(entries.map(({ name }) => name))
    this.#free = new Map([...lock.entries].sort(([a], [b]) => byNumber(a, b)))
    this.#flights = new Set(flights)
    this.#waiting = new Map(entries.map((entry) => [entry.name, entry]))
    this.#models = [...lock.entries.values(), ...flights]
    for (const [name, { hash }] of this.#free) addTo(this.#byHash, hash, name)
    for (const flight of flights) addTo(this.#flightsByHash, flight.hash, flight)
  }

  /** Pairs the rows of one level. The levels of the rows that they use must be paired first. */
  pair<Row extends Unpaired>(rows: readonly Row[]): readonly (Row & Paired)[] {
    const { isSelected } = this.#options
    for (const { entry } of rows) this.#waiting.delete(entry.name)
    const read = rows.map((row) => ({ row, readings: this.#readingsOf(row) }))
    const taken = new Map<Row, string>()
    for (const { row, readings } of read) {
      const own = this.#free.get(row.entry.name)
      const isOwn = readings.length === 0 || readings.some(({ hash }) => hash === own?.hash)
      if (own !== undefined && (isOwn || !isSelected(row.entry))) taken.set(row, row.entry.name)
    }
    const found = new Map<Row, Made | undefined>()
    const take = (row: Row, name: string) => {
      found.set(row, this.#free.get(name))
      this.#free.delete(name)
    }
    for (const [row, name] of taken) take(row, name)
    for (const { row, readings } of read) {
      const name = taken.has(row) ? undefined : this.#firstFree(row.entry, readings)
      if (name === undefined) continue
      take(row, name)
      this.renamed.push({ from: name, to: row.entry.name })
    }
    for (const row of rows) if (!found.has(row)) take(row, row.entry.name)
    return read.map(({ row, readings }) => this.#paired(row, readings, found.get(row)))
  }

  /**
   * The entries that no run has taken. One whose name a run has is nobody's any more: the run replaces its file, or has
   * taken another entry.
   */
  leftover(): ReadonlyMap<string, Made> {
    return new Map([...this.#free].filter(([name]) => !this.#names.has(name)))
  }

  /** The runs in flight that no run of the manifest has taken. */
  leftFlights(): readonly Flight[] {
    return [...this.#flights]
  }

  /** The runs in flight that a run of this name may take. */
  flightsOf(name: string): readonly Flight[] {
    return this.leftFlights().filter((each) => each.name === name || !this.#names.has(each.name))
  }

  /** Returns the models and hashes that the run may have. Empty while its identity input is unknown. */
  #readingsOf({ entry, identityInput, undocumentedInput }: Unpaired): readonly Reading[] {
    const inputs = [identityInput, undocumentedInput].filter((each) => each !== undefined)
    return this.#modelsOf(entry).flatMap((model) =>
      inputs.map((each) => ({ model, hash: this.#hashOf(model, each) })),
    )
  }

  #modelsOf({ name, kind, model }: ManifestEntry): readonly string[] {
    const chosen = model ?? (kind && this.#options.models[kind])
    if (chosen !== undefined) return [chosen]
    const own = this.#options.lock.entries.get(name)
    const used = [...(own === undefined ? [] : [own]), ...this.#models]
    return [
      ...new Set(used.flatMap((each) => (kind !== undefined && each.kind === kind ? [each.model] : []))),
    ]
  }

  /** All runs of a row share the object of their identity input. */
  #hashOf(model: string, input: unknown): string {
    const hashes = this.#hashes.get(input) ?? new Map<string, string>()
    this.#hashes.set(input, hashes)
    const hash = hashes.get(model) ?? identityOf(model, input)
    hashes.set(model, hash)
    return hash
  }

  #firstFree(entry: ManifestEntry, readings: readonly Reading[]): string | undefined {
    for (const { hash } of readings) {
      const names = this.#byHash.get(hash) ?? []
      // Drops the taken ones: with 10,000 runs of one input, each search would pass them all.
      while (names[0] !== undefined && !this.#free.has(names[0])) names.shift()
      const name = names.find((each) => this.#free.has(each) && this.#mayTake(entry, each))
      if (name !== undefined) return name
    }
    return undefined
  }

  /** Whether the run may take the entry of another name. A row that waits may still have the input of its entry. */
  #mayTake(entry: ManifestEntry, name: string): boolean {
    const { isSelected } = this.#options
    if (!isSelected(entry)) return !this.#names.has(name)
    const row = this.#waiting.get(name)
    return row === undefined || (isSelected(row) && !haveOneText(row, entry))
  }

  #paired<Row extends Unpaired>(
    row: Row,
    readings: readonly Reading[],
    locked: Made | undefined,
  ): Row & Paired {
    const hashes = readings.map((each) => each.hash)
    const flight = this.takeFlight(row.entry.name, hashes, locked?.hash)
    const known = [locked?.hash, flight?.hash]
    const reading = readings.find(({ hash }) => known.includes(hash))
    if (reading !== undefined) return { ...row, locked, flight, ...reading }
    const { model } = readings[0] ?? { model: this.#modelsOf(row.entry)[0] }
    const only = row.entry.model ?? (row.entry.kind && this.#options.models[row.entry.kind])
    const chosen = only ?? locked?.model ?? (this.#modelsOf(row.entry).length === 1 ? model : undefined)
    const hash =
      chosen === undefined || row.identityInput === undefined
        ? undefined
        : this.#hashOf(chosen, row.identityInput)
    return { ...row, locked, flight, model: chosen, hash }
  }

  /**
   * Takes a run in flight with one of these hashes: that of the row, else the oldest whose name has left the manifest. A
   * row that has a file of its hash takes only its own.
   */
  takeFlight(name: string, hashes: readonly string[], made: string | undefined): Flight | undefined {
    for (const hash of hashes) {
      const flights = this.#flightsByHash.get(hash)?.filter((each) => this.#flights.has(each)) ?? []
      const found =
        flights.find((each) => each.name === name) ??
        (made === hash ? undefined : flights.findLast((each) => !this.#names.has(each.name)))
      if (found === undefined) continue
      this.#flights.delete(found)
      return found
    }
    return undefined
  }
}

/** Whether two rows differ only in their media. */
function haveOneText(a: ManifestEntry, b: ManifestEntry): boolean {
  const textOf = ({ kind, input, media }: ManifestEntry) => {
    const others = Object.entries(input).filter(([name]) => !media.includes(name))
    return writeJson([kind, others.sort(([x], [y]) => (x < y ? -1 : 1))])
  }
  return textOf(a) === textOf(b)
}

/** Returns the model of each kind for which the lock file has only one model. New rows use it too. */
export function recordedModels({ entries }: Lock): Models {
  const found: Partial<Record<Kind, string>> = {}
  for (const kind of KINDS) {
    const models = new Set([...entries.values()].flatMap((made) => (made.kind === kind ? [made.model] : [])))
    const [only] = models
    if (models.size === 1 && only !== undefined) found[kind] = only
  }
  return found
}

/** In the order of the lock file, but `fox.png` before `fox-2.png`, and `fox-2` before `fox-10`. */
function byNumber(a: string, b: string): number {
  const [one, other] = [a, b].map((name) => /^(.*?)(?:-(\d+))?(?:\.[^./]*)?$/s.exec(name) ?? [name])
  const [stem = '', number = 1] = [one?.[1], Number(one?.[2] ?? 1)]
  const [otherStem = '', otherNumber = 1] = [other?.[1], Number(other?.[2] ?? 1)]
  return stem === otherStem ? number - otherNumber : stem < otherStem ? -1 : 1
}

/**
 * Assigns entries of the lock file, and runs in flight, to runs of the manifest, and finds the model of each run. Pure.
 *
 * By name, if the entry has the model and input of the run. A run without such an entry was renamed, or rows have swapped
 * their names: it takes the first free entry of its own model and input, in the order of the lock file, each once.
 */
import { isDeepStrictEqual } from 'node:util'
import { identityOf } from '../../protocol/identity.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { withMedia } from '../../protocol/media-parameters.js'
import { KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { addTo } from '../../protocol/parse.js'
import type { Lock, Made } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/entry.js'
import { withoutExtension } from '../manifest/outputs.js'
import type { Models } from '../manifest/row.js'

/** A create or a run that the lock file does not have. Only the journal knows it. */
export interface Flight {
  /** Name of the entry. */
  readonly name: string
  /** Hash of model and input. */
  readonly hash: string
  readonly kind: Kind | undefined
  readonly model: string
  /** Address of the service. */
  readonly address: string | undefined
  /** Id of the run. Undefined if the outcome of its create is unknown. */
  readonly run: string | undefined
  /** Key of its row in the journal, if it has no id. */
  readonly key: string | undefined
  /** Number of its row in the journal. */
  readonly row: number
  /** Links to the outputs of a run that has succeeded. */
  readonly urls: readonly string[]
  /** Files that have their final names, or were about to get them when the batch was killed. */
  readonly files: readonly DownloadedFile[]
}

export interface Unpaired {
  readonly entry: ManifestEntry
  /**
   * What identifies its input: now, and before the document of its model was known. Empty until the outputs that the row
   * uses are known.
   */
  readonly identities: readonly ModelInput[]
}

export interface Paired {
  readonly locked: Made | undefined
  /** A create of the same model and input that the lock file does not have. */
  readonly flight: Flight | undefined
  /** Undefined if manifest, settings and lock file name no model: the run cannot be created. */
  readonly model: string | undefined
  /** Hash of model and identity. Undefined if either is unknown. */
  readonly hash: string | undefined
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

export class Pairing {
  readonly #options: PairOptions
  readonly #recorded: Models
  readonly #names: ReadonlySet<string>
  /** Entries that no run has taken. */
  readonly #free: Map<string, Made>
  readonly #byHash = new Map<string, string[]>()
  /** Runs in flight that no run of the manifest has taken. */
  readonly #flights: Set<Flight>
  readonly #flightsByHash = new Map<string, Flight[]>()
  /** Rows whose level is not paired yet, by name. */
  readonly #waiting: Map<string, ManifestEntry>

  constructor(options: PairOptions) {
    const { entries, lock, flights } = options
    this.#options = options
    this.#names = new Set(entries.map(({ name }) => name))
    this.#waiting = new Map(entries.map((entry) => [entry.name, entry]))
    this.#free = new Map([...lock.entries].sort(([a], [b]) => byNumber(a, b)))
    this.#flights = new Set(flights)
    this.#recorded = recordedModels(lock)
    for (const [name, { hash }] of this.#free) addTo(this.#byHash, hash, name)
    for (const flight of flights) addTo(this.#flightsByHash, flight.hash, flight)
  }

  /** Pairs the rows of one level. The levels of the rows that they use must be paired first. */
  pair<Row extends Unpaired>(rows: readonly Row[]): readonly (Row & Paired)[] {
    const { isSelected } = this.#options
    const found = new Map<Row, Made | undefined>()
    const take = (row: Row, name: string) => {
      found.set(row, this.#free.get(name))
      this.#free.delete(name)
    }
    const read = rows.map((row) => ({ row, hashes: this.hashesOf(row) }))
    for (const { row, hashes } of read) {
      const { name } = row.entry
      this.#waiting.delete(name)
      const own = this.#free.get(name)
      const isOwn = hashes.length === 0 || (own !== undefined && hashes.includes(own.hash))
      if (own !== undefined && (isOwn || !isSelected(row.entry))) take(row, name)
    }
    for (const { row, hashes } of read) {
      const name = found.has(row) ? undefined : this.#firstFree(row.entry, hashes)
      if (name !== undefined) take(row, name)
    }
    return read.map(({ row, hashes }) => {
      if (!found.has(row)) take(row, row.entry.name)
      return { ...row, ...this.takeFlight(row.entry, hashes, found.get(row)) }
    })
  }

  /** Returns the hashes that a run may have. Empty while its identities are unknown. */
  hashesOf({ entry, identities }: Unpaired): readonly string[] {
    const model = this.#modelOf(entry)
    return model === undefined ? [] : identities.map((identity) => identityOf(model, identity))
  }

  /** Without a model in the manifest or the settings: that of its entry, else the only one of the lock file. */
  #modelOf({ name, kind, model }: ManifestEntry): string | undefined {
    if (model !== undefined) return model
    const { lock, models } = this.#options
    const own = lock.entries.get(name)
    return models[kind] ?? (own?.kind === kind ? own.model : this.#recorded[kind])
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

  /**
   * Takes a run in flight with one of these hashes: that of the row, else the oldest whose name has left the manifest. A
   * row that has a file of its hash takes only its own.
   */
  takeFlight(entry: ManifestEntry, hashes: readonly string[], locked: Made | undefined): Paired {
    const flight = hashes
      .map((hash) => this.#flightOf(entry.name, hash, locked?.hash === hash))
      .find((each) => each !== undefined)
    if (flight !== undefined) this.#flights.delete(flight)
    const known = hashes.find((hash) => hash === locked?.hash || hash === flight?.hash)
    return { locked, flight, model: this.#modelOf(entry), hash: known ?? hashes[0] }
  }

  #flightOf(name: string, hash: string, isMade: boolean): Flight | undefined {
    const flights = this.#flightsByHash.get(hash)?.filter((each) => this.#flights.has(each)) ?? []
    const own = flights.find((each) => each.name === name)
    return own ?? (isMade ? undefined : flights.findLast((each) => !this.#names.has(each.name)))
  }

  #firstFree(entry: ManifestEntry, hashes: readonly string[]): string | undefined {
    for (const hash of hashes) {
      const names = this.#byHash.get(hash) ?? []
      // Drops the taken ones: with 10,000 runs of one input, each search would pass them all.
      while (names[0] !== undefined && !this.#free.has(names[0])) names.shift()
      const name = names.find((each) => this.#free.has(each) && this.#mayTake(entry, each))
      if (name !== undefined) return name
    }
    return undefined
  }

  /** Whether the run may take the entry of another name. A row that waits may still have the input of its own entry. */
  #mayTake(entry: ManifestEntry, name: string): boolean {
    const { isSelected } = this.#options
    if (!isSelected(entry)) return !this.#names.has(name)
    const row = this.#waiting.get(name)
    return row === undefined || (isSelected(row) && !isDeepStrictEqual(knownPart(row), knownPart(entry)))
  }
}

/** The part of the input that does not depend on outputs of other runs. */
const knownPart = ({ kind, input, references }: ManifestEntry) => ({
  kind,
  input: withMedia(
    input,
    references.map(({ place }) => ({ ...place, value: '' })),
  ),
})

/** Returns the model of each kind for which the lock file has only one model. New rows use it too. */
export const recordedModels = ({ entries }: Lock): Models =>
  Object.fromEntries(
    KINDS.flatMap((kind) => {
      const models = new Set([...entries.values()].flatMap((each) => (each.kind === kind ? each.model : [])))
      return models.size === 1 ? [...models].map((model) => [kind, model]) : []
    }),
  )

const collator = new Intl.Collator('en', { numeric: true })

/** In the order of the lock file, but `fox.png` before `fox-2.png`, and `fox-2` before `fox-10`. */
const byNumber = (a: string, b: string): number => collator.compare(withoutExtension(a), withoutExtension(b))

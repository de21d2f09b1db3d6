/** Pairs entries of the lock file with runs of the manifest, and finds the model of each run. Pure. */

import type { ModelInput } from '../../protocol/models.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import type { Lock, LockEntry } from '../lock/lock.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { Models } from '../manifest/sections.js'

export interface Paired {
  readonly entry: ManifestEntry
  readonly locked: LockEntry | undefined
  readonly model: string | undefined
  /** Undefined where the model or the meaning is not known. */
  readonly hash: string | undefined
}

export interface Pairing {
  /** In the order of the rows that use each other. `meaning`: undefined where it is not known yet. */
  pair(entry: ManifestEntry, meaning: ModelInput | undefined): Paired
  /** Entries that no run of the manifest has any more. */
  readonly leftover: ReadonlyMap<string, LockEntry>
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
}

export interface PairOptions {
  readonly entries: readonly ManifestEntry[]
  readonly lock: Lock
  /** Of the settings: after what the manifest says, before what the lock file recorded. */
  readonly models: Models
  /** Equal for the same model and input. */
  identity(model: string, input: unknown): string
}

/**
 * By name. A run without an entry takes the one of a run of the same model and input that has left the manifest: it was
 * renamed, and is not paid for again. (A run without a name is named by its output, so moving a file renames it.)
 */
export function createPairing({ entries, lock, models, identity }: PairOptions): Pairing {
  const names = new Set(entries.map(({ name }) => name))
  const leftover = new Map([...lock.entries].filter(([name]) => !names.has(name)))
  const recorded = recordedModels(lock)
  const renamed: { from: string; to: string }[] = []
  const hashes = new Map<unknown, string>()
  const hashOf = (model: string, meaning: unknown): string => {
    // The runs of one row share the object.
    const known = hashes.get(meaning) ?? identity(model, meaning)
    hashes.set(meaning, known)
    return known
  }
  const byHash = new Map<string, string[]>()
  for (const [name, { made, pending }] of leftover)
    for (const hash of new Set([made?.hash, pending?.hash]))
      if (hash !== undefined) byHash.set(hash, [...(byHash.get(hash) ?? []), name])

  function pair(entry: ManifestEntry, meaning: ModelInput | undefined): Paired {
    const own = lock.entries.get(entry.name)
    const model = entry.model ?? modelFor(entry.kind, { models, own, recorded })
    const hash = model === undefined || meaning === undefined ? undefined : hashOf(model, meaning)
    if (own !== undefined || hash === undefined) return { entry, locked: own, model, hash }
    const from = byHash.get(hash)?.find((name) => leftover.has(name))
    const locked = from === undefined ? undefined : leftover.get(from)
    if (from !== undefined) {
      leftover.delete(from)
      renamed.push({ from, to: entry.name })
    }
    return { entry, locked, model, hash }
  }
  return { pair, leftover, renamed }
}

interface Sources {
  readonly models: Models
  readonly own: LockEntry | undefined
  readonly recorded: Models
}

function modelFor(kind: Kind | undefined, { models, own, recorded }: Sources): string | undefined {
  if (kind === undefined) return undefined
  const last = [own?.made, own?.pending].find((each) => each?.kind === kind)
  return models[kind] ?? last?.model ?? recorded[kind]
}

/** The model of a kind, when the lock file has only one: new rows use it too. */
function recordedModels({ entries }: Lock): Models {
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

/**
 * A store that remembers what it has just read. Clients poll: between two changes of the data the same key and the same
 * run are read again and again, and reading the two rows costs more than all the rest of an answer. What is remembered
 * counts until this process writes, through whichever store, or another one has written. The latter is asked at most
 * every few milliseconds: a key that another process disables is refused that much later.
 */
import type { Store } from './contract.js'

export interface Remembering {
  /** A value that changes whenever another process has changed the data. */
  version(): unknown
  /** Milliseconds, only forward. */
  now(): number
}

/** How long another process's change may go unseen. */
export const UNSEEN_MS = 5

const MOST_CHARACTERS = 32 * 1_048_576
/** Prompts have no limit; a run with a long one is read anew each time. */
const MOST_CHARACTERS_EACH = 32_768

type Work = (...values: unknown[]) => Promise<unknown>

const REMEMBERED: readonly string[] = ['findKey', 'findRun', 'findOutput']
/** What changes nothing that is remembered. Whatever is not named here is taken for a change of everything. */
const HARMLESS: readonly string[] = [
  'listWorkers',
  'imagesInUse',
  'keepWorker',
  'listAccounts',
  'listKeys',
  'listEntries',
  'verify',
]

/** Writes of this process, of all its stores together: two of them may be open on one file. */
let writes = 0

export function rememberReads(store: Store, { version, now }: Remembering): Store {
  /** What each function gave, by what it was asked. */
  const remembered = new Map<string, Map<string, unknown>>()
  let characters = 0
  let knownWrites = writes
  let knownVersion: unknown
  let askedAtMs = Number.NEGATIVE_INFINITY

  function forgetWhatMayBeOld(): void {
    const atMs = now()
    let changed = knownWrites !== writes
    knownWrites = writes
    if (changed || atMs - askedAtMs > UNSEEN_MS) {
      askedAtMs = atMs
      const current = version()
      changed ||= current !== knownVersion
      knownVersion = current
    }
    if (!changed) return
    for (const values of remembered.values()) values.clear()
    characters = 0
  }

  function remember(known: Map<string, unknown>, asked: string, value: unknown): void {
    const size = JSON.stringify(value).length
    if (size > MOST_CHARACTERS_EACH || characters + size > MOST_CHARACTERS) return
    characters += size
    known.set(asked, value)
  }

  function remembering(name: string, work: Work): Work {
    const known = new Map<string, unknown>()
    remembered.set(name, known)
    return async (...values) => {
      forgetWhatMayBeOld()
      const asked = values.length === 1 ? String(values[0]) : values.join(' ')
      const found = known.get(asked)
      if (found !== undefined) return found
      const before = writes
      const value = await work(...values)
      // What is not there may come; and what was read while something was written may already be old.
      if (value !== undefined && before === writes) remember(known, asked, value)
      return value
    }
  }

  const writing =
    (work: Work): Work =>
    async (...values) => {
      // On both sides: what is read in between is not yet, or no longer, true.
      writes++
      try {
        return await work(...values)
      } finally {
        writes++
      }
    }

  const functions = Object.entries(store as unknown as Readonly<Record<string, Work>>)
  return Object.fromEntries(
    functions.map(([name, work]) => {
      if (REMEMBERED.includes(name)) return [name, remembering(name, work)]
      return [name, HARMLESS.includes(name) ? work : writing(work)]
    }),
  ) as unknown as Store
}

/**
 * Writes the state of one row to the lock file at each step of its run. If a batch is killed, the next one continues
 * from there, and nothing is paid twice.
 */
import type { LockKeeper } from './file.js'
import {
  type CreateFacts,
  entryWith,
  type LockEntry,
  type Made,
  type Pending,
  type Placing,
  placingsOf,
} from './lock.js'

export interface RowLockOptions {
  readonly keeper: LockKeeper
  readonly name: string
  /** Returns the properties of the create. Called again at each write. */
  create(): CreateFacts
  readonly clock: { now(): number }
  /** Called if the lock file could not be written after the create. The journal has the run. */
  onWriteError(error: unknown): void
}

/** Outcome of a create. `key`: key of its row in the journal. */
export type CreateResult =
  | { readonly is: 'created'; readonly id: string }
  | { readonly is: 'unconfirmed'; readonly key: string | undefined }
  | { readonly is: 'refused' | 'unsent' }

export interface RowLock {
  /**
   * Called before each time the create is sent. Rejects if the lock file cannot be written: the create is then not
   * sent.
   */
  sending(token: string): Promise<void>
  /** `isNoted`: whether `sending` was called. */
  submitted(result: CreateResult, token: string, isNoted: boolean): Promise<void>
  /**
   * Called when an output is complete, before it gets its final name. If the batch is killed before the next write, a
   * later batch recognizes the file as its own. Not needed for an output that is downloaded again, which the lock file
   * already has.
   */
  placing(file: Placing & { readonly run: string }): Promise<void>
  /** Called when the run has failed. Keeps the entry of an earlier run. */
  failed(): Promise<void>
  made(made: Made): Promise<void>
}

export function createRowLock({ keeper, name, create, clock, onWriteError }: RowLockOptions): RowLock {
  const before = keeper.entry(name)
  /** Starts with the files of an earlier batch that was killed while it moved them into place. */
  let placing = placingsOf(before)
  const now = () => new Date(clock.now()).toISOString()
  const entryNow = (): LockEntry => keeper.entry(name) ?? NO_ENTRY

  // Keep the order of keys in the lock file: entries are compared as JSON.
  const pendingCreate = () => {
    const { inputs, ...facts } = create()
    const sent_at = keeper.entry(name)?.pending?.sent_at ?? now()
    return { ...facts, sent_at, inputs, ...(placing.length > 0 && { placing }) }
  }
  /** Returns the pending run of another version of the row, which this run does not replace. */
  const otherPending = (): Pending | undefined => {
    const { pending } = keeper.entry(name) ?? {}
    return pending?.hash === create().hash ? undefined : pending
  }
  const keep = (pending: Pending | undefined): Promise<void> =>
    keeper.set(name, entryWith({ ...entryNow(), pending }))
  /** Once a run exists, it continues even if the lock file cannot be written. */
  const keepSafely = (pending: Pending | undefined): Promise<void> => keep(pending).catch(onWriteError)

  return {
    async sending(token) {
      const sending: Pending = {
        ...pendingCreate(),
        sent_at: now(),
        state: 'unconfirmed',
        key: undefined,
        token,
      }
      await keep(sending).catch((error) => {
        onWriteError(error)
        throw error
      })
    },
    async submitted(result, token, isNoted) {
      if (result.is === 'created') await keepSafely({ ...pendingCreate(), state: 'accepted', run: result.id })
      else if (result.is === 'unconfirmed')
        await keepSafely({ ...pendingCreate(), state: 'unconfirmed', key: result.key, token })
      else if (isNoted) await keepSafely(before?.pending)
    },
    async placing(file) {
      if (file.run === before?.made?.run) return
      placing = [...placing.filter((each) => !isSame(each, file)), file]
      await keep({ ...pendingCreate(), state: 'accepted', run: file.run })
    },
    failed: () => keepSafely(otherPending()),
    made: (made) => keeper.set(name, { ...entryNow(), made, pending: otherPending() }).catch(onWriteError),
  }
}

const isSame = (a: Placing, b: Placing): boolean =>
  a.run === b.run && a.output === b.output && a.sha256 === b.sha256

const NO_ENTRY: LockEntry = { made: undefined, pending: undefined, further: {} }

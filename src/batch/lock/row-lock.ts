/**
 * Writes the state of one row to the lock file at each step of its run, so that a batch that is killed at any
 * moment continues from there
 * and nothing is paid twice.
 */
import type { LockKeeper } from './file.js'
import { type LockEntry, type Made, type Pending, type Placing, placingsOf } from './lock.js'

export interface RowLockOptions {
  readonly keeper: LockKeeper
  readonly name: string
  /** The facts of the create; read again at each write. */
  create(): Pick<Pending, 'hash' | 'model' | 'kind' | 'service' | 'inputs'>
  readonly clock: { now(): number }
  /** The lock file could not be written after the create. The journal has the run. */
  onWriteError(error: unknown): void
}

/** The outcome of a create. `key`: of the journal's row. */
export type CreateResult =
  | { readonly is: 'created'; readonly id: string }
  | { readonly is: 'unconfirmed'; readonly key: string | undefined }
  | { readonly is: 'refused' | 'unsent' }

export interface RowLock {
  /** Before each sending of a create. Rejects if it cannot be written: then the create is not sent. */
  sending(token: string): Promise<void>
  /** `isNoted`: whether `sending` was called. */
  submitted(result: CreateResult, token: string, isNoted: boolean): Promise<void>
  /**
   * An output is complete and gets its name next: killed between that and the next write of the lock file, a
   * batch recognises the file as
   * its own. An output that is downloaded again is in the lock file already.
   */
  placing(file: Placing & { readonly run: string }): Promise<void>
  /** The run has failed. */
  failed(): Promise<void>
  made(made: Made): Promise<void>
}

export function createRowLock({ keeper, name, create, clock, onWriteError }: RowLockOptions): RowLock {
  const before = keeper.entry(name)
  /** Also those of an earlier batch that was killed while it moved files into place. */
  let placing = placingsOf(before)
  const now = () => new Date(clock.now()).toISOString()

  // The order of the keys is that of the lock file: entries are compared as JSON.
  const pendingCreate = () => {
    const { inputs, ...facts } = create()
    const sent_at = keeper.entry(name)?.pending?.sent_at ?? now()
    return { ...facts, sent_at, inputs, ...(placing.length > 0 && { placing }) }
  }
  /** A run of another version of the row, which this one does not replace. */
  const otherPending = (): Pending | undefined => {
    const { pending } = keeper.entry(name) ?? {}
    return pending?.hash === create().hash ? undefined : pending
  }
  const keep = (pending: Pending | undefined): Promise<void> =>
    keeper.set(name, entryWith(keeper.entry(name), pending))
  /** Once a run exists, a lock file that cannot be written is no reason to lose it. */
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
    made: (made) =>
      keeper
        .set(name, { made, pending: otherPending(), further: keeper.entry(name)?.further ?? {} })
        .catch(onWriteError),
  }
}

const isSame = (a: Placing, b: Placing): boolean =>
  a.run === b.run && a.output === b.output && a.sha256 === b.sha256

const entryWith = (entry: LockEntry | undefined, pending: Pending | undefined): LockEntry | undefined =>
  entry?.made === undefined && pending === undefined
    ? undefined
    : { made: entry?.made, pending, further: entry?.further ?? {} }

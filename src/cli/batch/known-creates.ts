/**
 * Creates that are unconfirmed in the lock file because a batch was killed before it wrote their outcomes. The journal may
 * have them. It is searched by the token of each create: an equal input proves nothing, since two rows may have it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { entryWith, type Lock, type LockEntry, withEntry } from '../../batch/lock/lock.js'
import { usageError } from '../../errors.js'
import type { Recorder } from '../../runs/recorder.js'
import type { Context } from '../context/context.js'
import { JOURNAL_FILE } from '../settings/folders.js'

/**
 * Opens the journal if the lock file has such creates. Undefined if it has none, or if nothing is known of them: without
 * a journal, or without an address, which a plan does not need.
 */
export async function knownCreates(ctx: Context, lock: Lock): Promise<Recorder | undefined> {
  if (tokensIn(lock).length === 0 || !existsSync(join(ctx.stateFolder, JOURNAL_FILE))) return undefined
  const address = await ctx.address().catch(() => undefined)
  return address === undefined ? undefined : ctx.recorder()
}

/** Returns the lock with the outcomes from the journal. The same object if the journal adds none. */
export function adoptedLock(lock: Lock, recorder: Recorder): Lock {
  let adopted = lock
  for (const [name, entry] of lock.entries) {
    const known = adoptedEntry(entry, recorder)
    if (known !== entry) adopted = withEntry(adopted, name, known)
  }
  return adopted
}

/** Undefined if nothing was sent, and no file or failed run is known. */
function adoptedEntry(locked: LockEntry, recorder: Recorder): LockEntry | undefined {
  const { pending } = locked
  if (pending?.state !== 'unconfirmed' || pending.token === undefined) return locked
  const { key, token, ...create } = pending
  const known = recorder.createOf(token)
  // For example, a create sent by another machine.
  if (known === undefined) return locked
  if (known.state === 'unsent') return entryWith({ ...locked, pending: undefined })
  const { run } = known
  if (run.id !== undefined) return { ...locked, pending: { ...create, state: 'accepted', run: run.id } }
  return run.key === undefined || run.key === key
    ? locked
    : { ...locked, pending: { ...pending, key: run.key } }
}

/**
 * Removes the journal records of unsent creates before the batch runs. A batch that was suspended just before it sent
 * one of them can then no longer send it. Throws `usage` if that batch has sent it already. Resolves with whether the
 * lock file has such creates: write `planned` next, because only its content says that they were not sent.
 */
export async function takeUnsent(
  openRecorder: () => Promise<Recorder>,
  lock: Lock,
  planned: Lock,
): Promise<boolean> {
  const left = new Set(tokensIn(planned))
  const resolved = tokensIn(lock).filter((token) => !left.has(token))
  if (resolved.length === 0) return false
  const recorder = await openRecorder()
  const runs = new Set(
    [...planned.entries.values()].flatMap(({ pending }) =>
      pending?.state === 'accepted' ? [pending.run] : [],
    ),
  )
  for (const token of resolved) {
    const known = recorder.createOf(token)
    const isAdopted = known?.state === 'sent' && known.run.id !== undefined && runs.has(known.run.id)
    if (isAdopted || recorder.unprepare(token)) continue
    throw usageError(
      'Another batch of this manifest has sent a create meanwhile. This one has sent nothing.',
      'Run the same command again when no other batch is running.',
    )
  }
  return true
}

const tokensIn = ({ entries }: Lock): readonly string[] =>
  [...entries.values()].flatMap(({ pending }) =>
    pending?.state === 'unconfirmed' && pending.token !== undefined ? [pending.token] : [],
  )

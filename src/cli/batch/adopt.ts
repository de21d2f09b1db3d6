/**
 * The journal may know the outcome of a create that is unconfirmed in the lock file, because a batch was killed between
 * the two. It is asked by the token of that very create: an equal input proves nothing, since two rows may have it.
 */
import { type Lock, type LockEntry, withEntry } from '../../batch/lock/lock.js'
import type { Plan } from '../../batch/plan/index.js'
import { usageError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Recorder } from '../runs/record.js'
import { type Prepared, refuseImpossible } from './prepare.js'

type Creates = Pick<Recorder, 'createOf'>

/** The lock with what the journal knows; the same one when it knows nothing new. */
function adoptedLock(lock: Lock, creates: Creates): Lock {
  let adopted = lock
  for (const [name, entry] of lock.entries) {
    const known = adoptedEntry(entry, creates)
    if (known !== entry) adopted = withEntry(adopted, name, known)
  }
  return adopted
}

/** Undefined where nothing was sent and nothing made. */
function adoptedEntry(locked: LockEntry, creates: Creates): LockEntry | undefined {
  const { made, pending } = locked
  if (pending?.state !== 'unconfirmed' || pending.token === undefined) return locked
  const { key, token, ...create } = pending
  const known = creates.createOf(token)
  // Such as on another machine.
  if (known === undefined) return locked
  if (known.state === 'unsent') return made === undefined ? undefined : { ...locked, pending: undefined }
  const { run } = known
  if (run.id !== undefined) return { ...locked, pending: { ...create, state: 'accepted', run: run.id } }
  return run.key === undefined || run.key === key
    ? locked
    : { ...locked, pending: { ...pending, key: run.key } }
}

/** Without an address the journal cannot be searched, and unconfirmed rows stay so. */
export async function adoptedPlan(ctx: Context, { plan, planWith, options }: Prepared): Promise<Plan> {
  const { lock } = plan
  // The journal is opened only where there is something to ask.
  if (tokensIn(lock).length === 0) return plan
  const recorder = await ctx.recorder().catch((error: unknown) => {
    if (asRushesError(error).code !== 'no_base_url') throw error
  })
  const adopted = recorder === undefined ? lock : adoptedLock(lock, recorder)
  if (adopted === lock) return plan
  const current = await planWith(adopted)
  refuseImpossible({ plan: current, options })
  return current
}

/**
 * Takes the records of the creates that the plan counts as not sent, before it is carried out: a batch that was suspended just
 * before it sent one of them cannot send it any more. Throws `usage` where it was faster.
 */
export async function takeUnsent(ctx: Context, { lock }: Prepared, plan: Plan): Promise<void> {
  const left = new Set(tokensIn(plan.lock))
  const resolved = tokensIn(lock).filter((token) => !left.has(token))
  if (resolved.length === 0) return
  const recorder = await ctx.recorder()
  const runs = new Set(
    [...plan.lock.entries.values()].flatMap(({ pending }) =>
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
}

const tokensIn = ({ entries }: Lock): readonly string[] =>
  [...entries.values()].flatMap(({ pending }) =>
    pending?.state === 'unconfirmed' && pending.token !== undefined ? [pending.token] : [],
  )

/**
 * Creating the runs of a command: the first goes alone until it is answered, since a refused key or an empty account
 * then costs one request and not twenty; after it at most four are unanswered at a time. An answer that the next
 * create would get as well ends the creating.
 */
import type { Client } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { asRushesError, stopsCreating } from '../process/exit.js'
import { Interruption, type Interrupts } from '../process/interrupts.js'
import type { CreateNote } from './record.js'

const MOST_UNANSWERED = 4
/** A first signal waits that long for the answer to a create, so that the id is known. */
const ANSWER_GRACE_MS = 10_000

export interface Created {
  readonly id: string
  /** The parsed body of the 201. */
  readonly body: unknown
  /** Monotonic instants. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

export interface Submission {
  readonly client: Pick<Client, 'create'>
  readonly body: Uint8Array
  readonly clock: Clock
  readonly interrupts: Interrupts
  /** A new note for each create. */
  note(): CreateNote
  /** After the limiter's grant, before anything is noted or sent; again before every further sending. */
  beforeSend?(): Promise<void>
  /** Said once, when a signal comes while a create is unanswered. */
  onGrace(): void
}

/**
 * One create, seen through: rejects with a `RushesError`, or with the `Interruption` when nothing was sent. Whatever
 * happens is noted before anybody else hears of it.
 */
export async function submit(submission: Submission): Promise<Created> {
  const { client, body, clock, interrupts } = submission
  const note = submission.note()
  const ending = endOf(submission)
  let sentAtMs: number | undefined
  try {
    const { id, body: answer } = await client.create(body, {
      signal: ending.signal,
      async beforeSend() {
        interrupts.first.throwIfAborted()
        await submission.beforeSend?.()
        interrupts.first.throwIfAborted()
        note.sending()
        sentAtMs ??= clock.monotonic()
        ending.isUnanswered = true
      },
      onOutcome: note.answered,
      onRetry() {
        note.unsent()
        ending.isUnanswered = false
      },
    })
    note.accepted(id, answer)
    return { id, body: answer, sentAtMs: sentAtMs ?? clock.monotonic(), answeredAtMs: clock.monotonic() }
  } catch (thrown) {
    const error = thrown instanceof Interruption && ending.isUnanswered ? unanswered(thrown) : thrown
    if (error instanceof RushesError && MAY_EXIST.includes(error.code))
      throw keptAs(error, note.unknown(error))
    note.unsent()
    throw error
  } finally {
    ending.close()
  }
}

/** After these a run may exist. */
const MAY_EXIST: readonly string[] = ['submission_unknown', 'interrupted']

const keptAs = (error: RushesError, key: string | undefined): RushesError =>
  key === undefined
    ? error
    : error.with({
        hint: `${error.hint} It is kept as ${key} in rushes list; when you know what became of it: rushes forget ${key}`,
      })

/**
 * When a create ends early: at the first signal while nothing is on its way; ten seconds later, or at the second
 * signal, while an answer may still come.
 */
function endOf({ clock, interrupts, onGrace }: Submission) {
  const controller = new AbortController()
  const { first, second } = interrupts
  let disarm = () => {}
  const ending = {
    signal: controller.signal,
    isUnanswered: false,
    close() {
      disarm()
      first.removeEventListener('abort', atFirst)
      second.removeEventListener('abort', atSecond)
    },
  }
  function atFirst() {
    if (!ending.isUnanswered) return controller.abort(first.reason)
    if (!second.aborted) onGrace()
    disarm = clock.alarm(ANSWER_GRACE_MS, () => controller.abort(first.reason))
  }
  const atSecond = () => controller.abort(second.reason)
  first.addEventListener('abort', atFirst, { once: true })
  second.addEventListener('abort', atSecond, { once: true })
  if (first.aborted) controller.abort(first.reason)
  return ending
}

const unanswered = (reason: Interruption): RushesError =>
  new RushesError('interrupted', 'Interrupted before the service answered: a run may exist and cost money.', {
    exitCode: reason.exitCode,
    hint: "Do not simply send it again: look in the account's list of runs first.",
    cause: reason,
  })

export interface SubmitAll extends Submission {
  readonly count: number
  onCreated(index: number, created: Created): void
  /** A create that came to nothing, or whose outcome is unknown. */
  onRefused(index: number, error: RushesError): void
}

/** Resolves when every create is answered, or none will be sent any more; how many were begun. */
export async function submitAll(submission: SubmitAll): Promise<number> {
  const { count, onCreated, onRefused } = submission
  let begun = 0
  let stopped = false
  const one = async (): Promise<void> => {
    const index = begun++
    try {
      onCreated(index, await submit(submission))
    } catch (thrown) {
      const error = asRushesError(thrown)
      stopped ||= stopsCreating(error) || error.code === 'interrupted'
      onRefused(index, error)
    }
  }
  const several = async (): Promise<void> => {
    while (begun < count && !stopped) await one()
  }
  if (count > 0) await one()
  await Promise.all(Array.from({ length: Math.min(MOST_UNANSWERED, count - 1) }, several))
  return begun
}

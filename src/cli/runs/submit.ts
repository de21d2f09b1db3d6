/** Creating one run: what the journal is told, and how long a signal waits for the answer. */
import type { Client } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { Interruption, type Interrupts } from '../process/interrupts.js'
import type { CreateNote } from './record.js'

/** A first signal waits this long for the answer to a create, so that the id is known. */
const ANSWER_GRACE_MS = 10_000

export interface AcceptedRun {
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
  /** What the journal is told. */
  readonly note: CreateNote
  /** After the limiter's grant, before anything is noted or sent; again before every further sending. */
  beforeSend?(): Promise<void>
  /** Said once, when a signal comes while a create is unanswered. */
  onGrace(): void
}

/**
 * Sends one create and waits for its outcome. Rejects with a `RushesError`, or with the `Interruption` when nothing was
 * sent. The journal is told before the caller.
 */
export async function submit(submission: Submission): Promise<AcceptedRun> {
  const { client, body, clock, interrupts, note } = submission
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
        // A signal waited for this answer, and not for the next one.
        if (interrupts.first.aborted) ending.stop()
      },
    })
    note.accepted(id, answer)
    return { id, body: answer, sentAtMs: sentAtMs ?? clock.monotonic(), answeredAtMs: clock.monotonic() }
  } catch (thrown) {
    const error = thrown instanceof Interruption && ending.isUnanswered ? unanswered(thrown) : thrown
    if (mayExist(error)) throw keptAs(error, note.unknown(error))
    note.unsent()
    throw error
  } finally {
    ending.close()
  }
}

/** Whether a run may exist after this rejection of `submit`. Where nothing was sent it rejects with the `Interruption`. */
export const mayExist = (error: unknown): error is RushesError =>
  error instanceof RushesError && (error.code === 'submission_unknown' || error.code === 'interrupted')

const keptAs = (error: RushesError, key: string | undefined): RushesError =>
  key === undefined
    ? error
    : error.with({
        hint: `${error.hint} The journal keeps it as ${key}: see it with \`rushes show ${key}\`, remove it with \`rushes forget ${key} --yes\`.`,
      })

/**
 * When a signal ends a create: at once while nothing was sent; while an answer may still come, ten seconds later or at the
 * second signal.
 */
function endOf({ clock, interrupts, onGrace }: Submission) {
  const controller = new AbortController()
  const { first, second } = interrupts
  let disarm = () => {}
  let forget: readonly (() => void)[] = []
  const ending = {
    signal: controller.signal,
    isUnanswered: false,
    stop: () => controller.abort(first.reason),
    close() {
      disarm()
      for (const each of forget) each()
    },
  }
  function atFirst() {
    if (!ending.isUnanswered) return ending.stop()
    if (!(first.reason instanceof Interruption && first.reason.isSilent)) onGrace()
    disarm = clock.alarm(ANSWER_GRACE_MS, ending.stop)
  }
  forget = [onAbort(first, atFirst), onAbort(second, () => controller.abort(second.reason))]
  return ending
}

const unanswered = (reason: Interruption): RushesError =>
  new RushesError('interrupted', 'Interrupted before the service answered: a run may exist and cost money.', {
    exitCode: reason.exitCode,
    hint: 'Check the runs of your account before you send it again.',
    cause: reason,
  })

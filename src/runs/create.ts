/** Sends one create. Writes the journal before and after it, and still waits for the response after a signal. */
import type { ApiClient } from '../client/index.js'
import { EXIT, RushesError } from '../errors.js'
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { Interruption, type Interrupts } from '../host/interrupts.js'
import type { CreateNote } from './recorder.js'

/** Time to wait for the response to a create after the first signal, so that the run id is not lost. */
const ANSWER_GRACE_MS = 10_000

interface AcceptedRun {
  readonly id: string
  /** Parsed body of the 201 response. */
  readonly body: unknown
  /** Monotonic times in milliseconds. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

interface Submission {
  readonly client: Pick<ApiClient, 'create'>
  readonly body: Uint8Array
  readonly clock: Clock
  readonly interrupts: Interrupts
  /** Records this create in the journal. */
  readonly note: CreateNote
  /** Called when the rate limiter allows the request, before it is recorded and sent, and again before each retry. */
  beforeSend?(): Promise<void>
  /** Called once, if a signal arrives while the create has no response yet. */
  onGrace(): void
}

/**
 * Sends one create and waits for its outcome. Writes the journal before it settles. Rejects with a `RushesError`, or
 * with the `Interruption` if nothing was sent.
 */
export async function submit(submission: Submission): Promise<AcceptedRun> {
  const { client, body, clock, interrupts, note } = submission
  const ending = createEnding(submission)
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
        // After a signal, the create is not retried.
        if (interrupts.first.aborted) ending.stop()
      },
    })
    note.accepted(id, answer)
    return { id, body: answer, sentAtMs: sentAtMs ?? clock.monotonic(), answeredAtMs: clock.monotonic() }
  } catch (thrown) {
    const error = thrown instanceof Interruption && ending.isUnanswered ? unansweredError(thrown) : thrown
    if (mayExist(error)) throw withJournalHint(error, note.unknown(error))
    note.unsent()
    throw error
  } finally {
    ending.close()
  }
}

/**
 * Whether a run may exist after `submit` has rejected with this error. An `Interruption` means that nothing was sent.
 */
export const mayExist = (error: unknown): error is RushesError =>
  error instanceof RushesError && (error.code === 'submission_unknown' || error.code === 'interrupted')

const withJournalHint = (error: RushesError, key: string | undefined): RushesError =>
  key === undefined
    ? error
    : error.with({
        hint:
          `${error.hint} The journal keeps it as ${key}: see it with \`rushes show '${key}'\`, remove it with ` +
          `\`rushes forget '${key}' --yes\`.`,
      })

/**
 * Decides when a signal aborts a create. If nothing was sent, immediately. Otherwise a response may still arrive: after
 * ten seconds, or at the second signal.
 */
function createEnding({ clock, interrupts, onGrace }: Submission) {
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
  function onFirstSignal() {
    if (!ending.isUnanswered) return ending.stop()
    if (!(first.reason instanceof Interruption && first.reason.isSilent)) onGrace()
    disarm = clock.alarm(ANSWER_GRACE_MS, ending.stop)
  }
  forget = [onAbort(first, onFirstSignal), onAbort(second, () => controller.abort(second.reason))]
  return ending
}

const unansweredError = (reason: Interruption): RushesError =>
  new RushesError('interrupted', 'Interrupted before the service answered: a run may exist and cost money.', {
    exitCode: reason.exitCode,
    hint: 'Check the runs of your account before you send it again.',
    cause: reason,
  })

/** Whether every create of a command so far has met a network or service error. Further ones would only do the same. */
export interface OutageCheck {
  /** `error`: of a create. Undefined if it was accepted. */
  add(error: RushesError | undefined): void
  readonly isDown: boolean
}

export function createOutageCheck(): OutageCheck {
  let hasAnswered = false
  let hasFailed = false
  return {
    add(error) {
      if (error === undefined) hasAnswered = true
      else if (isOutage(error)) hasFailed = true
      // A mistake in the input was found before the create was sent.
      else if (error.exitCode !== EXIT.usage) hasAnswered = true
    },
    get isDown() {
      return hasFailed && !hasAnswered
    },
  }
}

const isOutage = ({ exitCode }: RushesError): boolean =>
  exitCode === EXIT.serviceBroken || exitCode === EXIT.network

/** Exit codes after which a command sends no more creates: these would fail the same way, or could be paid twice. */
const STOPPING: readonly number[] = [EXIT.refused, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

export const stopsCreating = (error: RushesError): boolean => STOPPING.includes(error.exitCode)

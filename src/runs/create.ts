/** Sends one create. Writes the journal before and after it, and still waits for the response after a signal. */
import type { ApiClient } from '../client/index.js'
import { EXIT, RushesError } from '../errors.js'
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import type { Intent } from '../journal/index.js'
import type { KnownRun } from './follow.js'
import { type CreateNote, type Recorder, statusIn } from './recorder.js'

/** Time to wait for the response to a create after the first signal, so that the run id is not lost. */
export const ANSWER_GRACE_MS = 10_000

interface AcceptedRun {
  readonly id: string
  /** Parsed body of the 201 response. */
  readonly body: unknown
  /** Monotonic times in milliseconds. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

interface CreateService {
  readonly client: Pick<ApiClient, 'create'>
  readonly clock: Clock
  readonly interrupts: Interrupts
  /** Called once, if a signal arrives while the create has no response yet. */
  onGrace(): void
}

interface Submission extends CreateService {
  readonly body: Uint8Array
  /** Records this create in the journal. */
  readonly note: CreateNote
  /** Called when the rate limiter allows the request, before it is recorded and sent, and again before each retry. */
  beforeSend?(): Promise<void>
}

/** The create of one run. */
export interface CreateRequest {
  readonly body: Uint8Array
  readonly intent: Omit<Intent, 'address' | 'profile'>
  /** Whether the create may be sent if the journal cannot be written. Default: `best effort`. */
  readonly need?: 'required' | 'best effort'
  /** The input of the run in the output of the command, with each data: URL replaced by its hash. */
  readonly input?: unknown
  /** Called when the rate limiter allows the request, before it is recorded. If it resolves with false, nothing is sent. */
  beforeSend?(): Promise<boolean>
}

/** Outcome of a create. */
export type Submitted =
  /** `status`: in the response to the create, if any. */
  | { readonly is: 'created'; readonly run: KnownRun; readonly status: string | undefined }
  /** A run may exist. `key`: key of its row in the journal. */
  | { readonly is: 'unconfirmed'; readonly key: string | undefined; readonly error: RushesError }
  | { readonly is: 'refused'; readonly error: RushesError }
  /** The command was stopped before the create was sent. */
  | { readonly is: 'unsent' }

export interface CreateParts extends CreateService {
  readonly recorder: Pick<Recorder, 'note'>
}

/** Sends the create of a run. Never rejects. `request`: rejects if the create cannot be sent. */
export async function createRun(
  parts: CreateParts,
  request: () => Promise<CreateRequest>,
): Promise<Submitted> {
  const stopped = new Error('the command was stopped')
  let key: string | undefined
  try {
    const { body, intent, need, input, beforeSend } = await request()
    const note = parts.recorder.note(intent, need)
    const { body: service, ...sent } = await submit({
      ...parts,
      body,
      note: {
        ...note,
        unknown(error) {
          key = note.unknown(error)
          return key
        },
      },
      async beforeSend() {
        if ((await beforeSend?.()) === false) throw stopped
      },
    })
    const createdAt = new Date(parts.clock.now()).toISOString()
    const run = { kind: intent.kind, model: intent.model, input, service, createdAt, ...sent }
    return { is: 'created', run, status: statusIn(service) }
  } catch (thrown) {
    if (thrown === stopped || thrown instanceof Interruption) return { is: 'unsent' }
    if (mayExist(thrown)) return { is: 'unconfirmed', key, error: thrown }
    return { is: 'refused', error: asRushesError(thrown) }
  }
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
const mayExist = (error: unknown): error is RushesError =>
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

/**
 * Whether every create of a command so far has met a network or service error. Further ones would only do the same.
 * `outcomes`: the error of each create. Undefined for one that was accepted.
 */
export function isServiceDown(outcomes: readonly (RushesError | undefined)[]): boolean {
  // A mistake in the input was found before the create was sent.
  const sent = outcomes.filter((error) => error?.exitCode !== EXIT.usage)
  return sent.length > 0 && sent.every((error) => error !== undefined && isOutage(error))
}

const isOutage = ({ exitCode }: RushesError): boolean =>
  exitCode === EXIT.serviceBroken || exitCode === EXIT.network

/** Exit codes after which a command sends no more creates: these would fail the same way, or could be paid twice. */
const STOPPING: readonly number[] = [EXIT.refused, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

export const stopsCreating = (error: RushesError): boolean => STOPPING.includes(error.exitCode)

/**
 * One run from its create to its outputs. Each method sends one request (a create with its repeats) or fetches the
 * outputs, writes the journal, and says by `phase` what comes next; the schedule decides when.
 *
 *     waiting ──► ready ──► creating ──► following ⇄ asking ──► delivering ──► ended
 *
 * A run that exists already begins with `following`.
 */

import type { ApiClient, CreateOutcome } from '../client/index.js'
import { RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import { jittered } from '../host/retry.js'
import type { Intent, IntentRow, Journal, JournalRun, Policy } from '../journal/index.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import type { DownloadedFile } from '../protocol/media.js'
import { isObject } from '../protocol/parse.js'
import type { RunState } from '../protocol/run-state.js'
import { printable } from '../protocol/text.js'
import { isoTime } from '../protocol/units.js'
import { beginFollow, endErrorOf, type Follow, follow } from './follow.js'

export interface RunsSession {
  readonly client: ApiClient
  /** Undefined for the library, which remembers nothing. */
  readonly journal: Journal | undefined
  /** Whether a create may be sent if its intent cannot be written. */
  readonly policy: Policy
  /** The service's name in the journal: its URL, or `local`. */
  readonly address: string
  readonly profile: string
  readonly clock: Clock
  /** Returns a number in [0, 1). */
  random(): number
  readonly interrupts: Interrupts
  /** Timeout of each run, from its creation, or from now if it already exists. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  /** Sends a single status request for each run, with its retries. */
  readonly isOnce?: boolean
  /** False: the runs are only created. */
  readonly isFollowed?: boolean
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency?: number | undefined
  /** Aborted: no further create is sent. */
  readonly noCreates?: AbortSignal | undefined
  /** Whether a run that fails stops further creates. */
  readonly isFailFast?: boolean | undefined
  /** Whether this error of a create stops further creates. */
  stopsCreates(error: RushesError): boolean
}

/** The create of one run. */
export interface CreateRequest {
  readonly body: Uint8Array
  readonly intent: Omit<Intent, 'address' | 'profile'>
  /** The input of the run in the output of the command, with each data: URL replaced by its hash. */
  readonly input?: unknown
}

export type Begin =
  /** `request` is called when the create is due. If it rejects, the create is refused with its error. */
  | { readonly is: 'create'; request(): Promise<CreateRequest> }
  /**
   * `createdAtMs`: monotonic time of the 201, if this process created the run. `countedFromMs`: start of its timeout.
   * Default: then, or now.
   */
  | {
      readonly is: 'follow'
      readonly run: KnownRun
      readonly createdAtMs?: number | undefined
      readonly countedFromMs?: number | undefined
    }
  /** No request is needed, or none helps. `isMade`: the rows that need this one can start. */
  | { readonly is: 'done'; readonly isMade: boolean }

export interface Row {
  /** Unique in the command. */
  readonly name: string
  /** Name to show beside the id. Default: that of the run. */
  readonly label?: string
  /** Names of rows whose outputs must exist before this one begins. */
  readonly needs?: readonly string[]
  /** Decides what to do, when all rows that it needs have been made. */
  begin(): Begin
  /** Downloads the outputs. Never rejects. */
  deliver?(run: Run, state: RunState): Promise<Delivery>
}

type JournalFields = Omit<JournalRun, 'id' | 'error'>

/** A run that exists, with what the journal and this command know about it. */
export type KnownRun = { readonly [Name in keyof JournalFields]?: JournalFields[Name] | undefined } & {
  readonly id: string
  /** Whether its row had its id at once. Undefined for a run that this command has not created. */
  readonly isInJournal?: boolean
  /** Body of the 201 response to the create. */
  readonly service?: unknown
}

export interface Delivery {
  /** Complete files in the order of the outputs. After an interruption, in the order in which they were completed. */
  readonly files: readonly DownloadedFile[]
  readonly warnings: readonly string[]
  readonly error: RushesError | undefined
}

export type Result =
  /** Created, and not followed. */
  | { readonly is: 'created' }
  | { readonly is: 'succeeded'; readonly delivery: Delivery | undefined }
  /** At least one output is missing. */
  | { readonly is: 'undelivered'; readonly delivery: Delivery; readonly error: RushesError }
  /** Ended without outputs, or the service does not answer for it. */
  | { readonly is: 'failed'; readonly error: RushesError }
  /** No longer followed. `error`: of the service, if it never answered. */
  | {
      readonly is: 'running'
      readonly why: 'time limit' | 'signal' | 'not finished'
      readonly error?: RushesError | undefined
    }
  /** A run may exist. `key`: of its row in the journal. */
  | { readonly is: 'unconfirmed'; readonly key: string | undefined; readonly error: RushesError }
  | { readonly is: 'refused'; readonly error: RushesError }
  /** The command was stopped before the create was sent. */
  | { readonly is: 'unsent' }
  | { readonly is: 'done'; readonly isMade: boolean }
  /** `by`: name of a row that it needs. */
  | { readonly is: 'blocked'; readonly by: string }

export type RunPhase = 'waiting' | 'ready' | 'creating' | 'following' | 'asking' | 'delivering' | 'ended'

/** Time to wait for the response to a create after the first signal, so that the run id is not lost. */
export const ANSWER_GRACE_MS = 10_000
/** A status request that is unanswered for this long at the time limit shows that the service does not answer. */
const SILENCE_MS = 1_000

/** Further status requests of a command that looks once, after one without a valid response. */
const MAX_RETRIES_ONCE = 3

const UNSENT = new Error('the command was stopped before the create was sent')

export class Run {
  readonly row: Row
  /** Position among the rows of the command, from 0. */
  readonly index: number
  phase: RunPhase = 'waiting'
  /** Number of rows that it needs and that are not made yet. */
  missing: number
  result: Result | undefined
  /** Undefined until the run exists. */
  known: KnownRun | undefined
  /** State from the last status request with a valid response. */
  state: RunState | undefined
  /** Error of the last status request, if it had no valid response. */
  trouble: RushesError | undefined
  /** When the next status request is due. */
  dueAtMs = 0
  limitAtMs = Number.POSITIVE_INFINITY
  /** Whether its time limit has passed, and its last status request was sent. */
  isAskedLast = false
  /** Time at which this command saw the end of the run. ISO 8601 in UTC. */
  finishedAt: string | undefined
  /** Time from sending the create to the end. */
  elapsedMs: number | undefined
  /** False: the journal could not take the intent of its create, which was not sent. */
  isRecordable = true
  /** The create was sent and is not answered. */
  isUnanswered = false
  /** The service gave the same id to an earlier create of the command. */
  isRepeated = false
  #request: (() => Promise<CreateRequest>) | undefined
  #follow: Follow | undefined
  #sentAtMs: number | undefined
  #askedAtMs: number | undefined
  /** Aborts the request in flight. */
  #abort = new AbortController()
  readonly #session: RunsSession
  /** The runs that this command has created: the identities of their inputs by id. */
  readonly #created: Map<string, string | undefined>

  constructor(row: Row, index: number, session: RunsSession, created: Map<string, string | undefined>) {
    this.row = row
    this.index = index
    this.missing = row.needs?.length ?? 0
    this.#session = session
    this.#created = created
  }

  get id(): string {
    return this.known?.id ?? ''
  }

  begin(): void {
    const begin = this.row.begin()
    if (begin.is === 'done') {
      this.end(begin)
      return
    }
    if (begin.is === 'create') {
      this.#request = begin.request
      this.phase = 'ready'
      return
    }
    const nowMs = this.#session.clock.monotonic()
    const { createdAtMs, countedFromMs = createdAtMs ?? nowMs } = begin
    this.known = begin.run
    this.#beginFollowing(createdAtMs, countedFromMs)
    this.dueAtMs = createdAtMs === undefined ? nowMs : createdAtMs + POLL_INTERVAL_MS.min
  }

  end(result: Result): void {
    this.result ??= result
    this.phase = 'ended'
  }

  /** Ends its request in flight. */
  abort(reason: unknown): void {
    this.#abort.abort(reason)
  }

  /** Sends the create. `mayCreate`: asked when the rate limiter allows the request. */
  async create(mayCreate: () => boolean): Promise<void> {
    const { client, clock, journal, policy, address, profile, interrupts } = this.#session
    this.phase = 'creating'
    this.#abort = new AbortController()
    let intent: IntentRow | undefined
    let last: CreateOutcome | undefined
    const unsent = () => {
      this.isUnanswered = false
      if (intent !== undefined) journal?.unsent(intent)
      intent = undefined
    }
    try {
      const { body, input, intent: meant } = await (this.#request as () => Promise<CreateRequest>)()
      const accepted = await client.create(body, {
        signal: this.#abort.signal,
        beforeSend: () => {
          if (!mayCreate()) throw UNSENT
          this.isRecordable = false
          intent = journal?.intend(policy, { ...meant, address, profile })
          this.isRecordable = true
          this.#sentAtMs ??= clock.monotonic()
          this.isUnanswered = true
        },
        onOutcome: (outcome) => {
          last = outcome
        },
        onRetry: () => {
          unsent()
          // After a signal, the create is not sent again.
          if (interrupts.first.aborted) this.abort(interrupts.first.reason)
        },
      })
      this.isUnanswered = false
      const { id, body: service } = accepted
      this.isRepeated = this.#created.has(id)
      if (this.isRepeated && this.#created.get(id) !== meant.identity) throw idOfAnother(id)
      this.#created.set(id, meant.identity)
      if (intent !== undefined)
        journal?.accepted(intent, { id, status: statusIn(service), seed: seedIn(service) })
      const { kind, model, name } = meant
      const { row } = intent ?? {}
      const isInJournal = row !== undefined && journal?.isBehind === false
      this.known = { id, row, isInJournal, kind, model, name, input, service, createdAtMs: clock.now() }
      const nowMs = clock.monotonic()
      this.#beginFollowing(nowMs, nowMs)
      this.dueAtMs = nowMs + POLL_INTERVAL_MS.min
    } catch (thrown) {
      const error = thrown instanceof Interruption && this.isUnanswered ? unansweredError(thrown) : thrown
      if (
        error instanceof RushesError &&
        (error.code === 'submission_unknown' || error.code === 'interrupted')
      ) {
        const answer = last?.kind === 'nameless' || last?.kind === 'unknown' ? last.text : undefined
        const { code, message, httpStatus: answerStatus } = error
        const key = journal?.markUnconfirmed(intent, { code, message, answerStatus, answer })
        this.end({ is: 'unconfirmed', key, error })
        return
      }
      unsent()
      if (error === UNSENT || error instanceof Interruption) this.end({ is: 'unsent' })
      else this.end({ is: 'refused', error: asRushesError(error) })
    }
  }

  #beginFollowing(createdAtMs: number | undefined, countedFromMs: number): void {
    this.#follow = beginFollow(createdAtMs, this.#session.clock.monotonic())
    this.limitAtMs = countedFromMs + (this.#session.timeoutMs ?? Number.POSITIVE_INFINITY)
    this.phase = 'following'
  }

  /** Sends one status request. */
  async ask(): Promise<void> {
    const { client, clock, journal, address, random, isOnce } = this.#session
    this.phase = 'asking'
    this.#abort = new AbortController()
    const { signal } = this.#abort
    this.#askedAtMs = undefined
    const onSend = () => {
      this.#askedAtMs = clock.monotonic()
    }
    const outcome = await client.status(this.id, signal, onSend).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    if (signal.aborted || outcome === undefined) return
    const nowMs = clock.monotonic()
    const { after, step } = follow(this.#follow as Follow, outcome, { nowMs, load: client.limiter.load() })
    this.#follow = after
    this.trouble = undefined
    if (step.is === 'ended') return this.#ended(step.state)
    if (step.is === 'gave up') return this.#giveUp(step.error)
    const { state, error, inMs } = step
    if (isOnce && after.failures > MAX_RETRIES_ONCE && error !== undefined) return this.#giveUp(error)
    this.trouble = error
    if (state !== undefined) {
      // An earlier command has waited for the URLs of this run.
      const { phase, urls } = this.known ?? {}
      const isOld = phase === 'succeeded' && urls?.length === 0
      if (state.withoutUrls !== undefined && isOld) return this.#ended(state)
      // Also of a run whose URLs are missing: it is paid for, and has ended.
      if (state.status !== this.state?.status) journal?.status(address, { state, elapsedMs: this.#elapsed() })
      this.state = state
    }
    if (isOnce && error === undefined) return this.end({ is: 'running', why: 'not finished' })
    // A random time in the range, so that clients do not poll in step.
    this.dueAtMs = nowMs + jittered(inMs, random())
    this.phase = 'following'
  }

  /** Downloads the outputs. */
  async deliver(): Promise<void> {
    this.phase = 'delivering'
    const delivery = await this.row.deliver?.(this, this.state as RunState)
    if (delivery?.error === undefined) this.end({ is: 'succeeded', delivery })
    else this.end({ is: 'undelivered', delivery, error: delivery.error })
  }

  /**
   * Ends a run that is no longer followed. If only its URLs were missing, it has ended, and is not called running.
   * `isServiceAnswering`: the service has answered for a run of this command.
   */
  stop(why: 'time limit' | 'signal', isServiceAnswering: boolean): void {
    if (this.known === undefined) this.end({ is: 'unsent' })
    else if (this.state?.withoutUrls !== undefined) this.#ended(this.state)
    else {
      const isSilent = why === 'time limit' && !isServiceAnswering
      const error = isSilent ? (this.#follow?.lastError ?? this.#silence()) : undefined
      this.end({ is: 'running', why, error })
    }
  }

  #giveUp(error: RushesError): void {
    const { journal, address } = this.#session
    const { code, message, httpStatus: answerStatus } = error
    if (code === 'run_not_found') journal?.notFound(address, this.id, { code, message, answerStatus })
    const isOfThisCommand = code === 'run_not_found' && this.#sentAtMs !== undefined
    this.end({ is: 'failed', error: isOfThisCommand ? lostByService(error) : error })
  }

  #ended(state: RunState): void {
    const { journal, address, clock } = this.#session
    this.state = state
    this.elapsedMs = this.#elapsed()
    this.finishedAt = isoTime(this.known?.finishedAtMs ?? clock.now())
    journal?.status(address, { state, elapsedMs: this.elapsedMs })
    const error = endErrorOf(state, address === 'local')
    if (error === undefined) this.phase = 'delivering'
    else this.end({ is: 'failed', error })
  }

  #elapsed(): number | undefined {
    const { clock } = this.#session
    const { elapsedMs, createdAtMs } = this.known ?? {}
    if (elapsedMs !== undefined) return elapsedMs
    if (this.#sentAtMs !== undefined) return clock.monotonic() - this.#sentAtMs
    return createdAtMs === undefined ? undefined : Math.max(0, clock.now() - createdAtMs)
  }

  /** The error of a service that does not answer the request in flight. */
  #silence(): RushesError | undefined {
    const { client, clock } = this.#session
    if (this.#askedAtMs === undefined || clock.monotonic() - this.#askedAtMs < SILENCE_MS) return undefined
    return new RushesError('network', `${new URL(client.baseUrl).host} did not answer within the timeout.`, {
      runId: this.id,
      hint: 'Check the service URL and the network, or wait longer with --timeout.',
    })
  }
}

const unansweredError = (reason: Interruption): RushesError =>
  new RushesError('interrupted', 'Interrupted before the service answered: a run may exist and cost money.', {
    exitCode: reason.exitCode,
    hint: 'Check the runs of your account before you send it again.',
    cause: reason,
  })

/** The run of another input has this id, so its outputs are not those of this create. */
const idOfAnother = (id: string): RushesError =>
  new RushesError(
    'submission_unknown',
    `The service accepted the run, but gave it the id of another create of this command (${printable(id)}).`,
    { hint: 'A run may exist and cost money. Check the runs of your account before you send it again.' },
  )

/** The status in the response to a create. */
const statusIn = (body: unknown): string | undefined => {
  const status = isObject(body) ? body.status : undefined
  return typeof status === 'string' && status !== '' ? status : undefined
}

/** The seed in the response to a create. */
function seedIn(body: unknown): number | bigint | undefined {
  const seed = isObject(body) && isObject(body.input) ? body.input.seed : undefined
  return typeof seed === 'bigint' || Number.isSafeInteger(seed) ? (seed as number | bigint) : undefined
}

/** The id comes from the service, so that there is nothing to check about it. */
const lostByService = (error: RushesError): RushesError =>
  error.with({
    consequence: 'The service accepted this run before, and it may be paid for.',
    hint: 'Check the runs of your account before you create it again.',
  })

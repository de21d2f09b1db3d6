/**
 * The journal, for commands that create runs: no failure of it throws. When it cannot be written, one warning says what that
 * means, and the command continues: a paid run is worth more than its row.
 */

import { resolve } from 'node:path'
import type { CreateOutcome } from '../../client/index.js'
import type { DownloadedFile } from '../../download/index.js'
import { messageOf, type RushesError } from '../../errors.js'
import { RepeatedRequest } from '../../journal/creates.js'
import type {
  Intent,
  IntentRow,
  Journal,
  JournalFile,
  JournalRun,
  StatusUpdate,
  TypicalDuration,
  UnknownOutcome,
} from '../../journal/index.js'

/** What the journal keeps of one create. */
export interface CreateNote {
  /** Directly before the bytes are sent; again before every further sending. Throws `RepeatedRequest`. */
  sending(): void
  /** It was certainly not accepted. */
  unsent(): void
  answered(outcome: CreateOutcome): void
  accepted(id: string, body: unknown): void
  /** Its outcome is not known, or it was accepted without an id. Returns the key of its row. */
  unknown(error: RushesError): string | undefined
}

export interface Recorder {
  note(intent: Omit<Intent, 'address' | 'profile'>): CreateNote
  recordStatus(update: StatusUpdate): void
  /** Nobody renders this local run any longer: the journal shows it as what it is, unless it has ended. */
  recordQueued(id: string): void
  /** The service says that it has no such run. */
  recordNotFound(error: RushesError, id: string): void
  recordFiles(id: string, files: readonly DownloadedFile[]): void
  /** The files of a run that earlier commands downloaded. */
  filesOf(id: string): readonly JournalFile[]
  find(id: string): JournalRun | undefined
  typicalDuration(model: string): TypicalDuration | undefined
  durations(model: string): readonly number[]
  /** The newest run with an id that was created for the same request at that instant or later. */
  lastOf(identity: string, sinceMs: number): JournalRun | undefined
}

export interface RecorderOptions {
  /** Undefined where there is none. */
  readonly journal: Journal | undefined
  readonly address: string
  readonly profile: string
  warn(message: string): void
}

export function createRecorder({ journal, address, profile, warn }: RecorderOptions): Recorder {
  let isLost = journal === undefined

  function attempt<Result>(work: (journal: Journal) => Result): Result | undefined {
    if (isLost || journal === undefined) return undefined
    try {
      return work(journal)
    } catch (error) {
      // Not the journal's failure: the create must not be sent.
      if (error instanceof RepeatedRequest) throw error
      isLost = true
      warn(
        `${messageOf(error)} From now on, the runs of this command will not be remembered. Keep the ids that are printed.`,
      )
      return undefined
    }
  }

  return {
    note: (intent) => createNote(attempt, { ...intent, address, profile }),
    recordStatus: (update) => attempt((open) => open.recordStatus(address, update)),
    recordQueued: (id) =>
      attempt((open) => {
        if (open.find(address, id)?.phase !== 'going') return
        const state = { id, phase: 'going', status: 'queued', urls: [], service: null } as const
        const unknown = { failure: undefined, createdAt: undefined, finishedAt: undefined }
        open.recordStatus(address, { state: { ...state, ...unknown } })
      }),
    recordNotFound: (error, id) => attempt((open) => open.recordNotFound(address, id, doubtOf(error))),
    recordFiles: (id, files) =>
      attempt((open) =>
        open.recordFiles(
          address,
          id,
          // Bytes that were written to standard output have no file.
          files.filter(({ path }) => path !== '-').map((file) => ({ ...file, path: resolve(file.path) })),
        ),
      ),
    filesOf: (id) =>
      attempt((open) => {
        const run = open.find(address, id)
        return run === undefined ? [] : open.filesOf(run)
      }) ?? [],
    find: (id) => attempt((open) => open.find(address, id)),
    durations: (model) => attempt((open) => open.durations(address, model)) ?? [],
    lastOf: (identity, sinceMs) => attempt((open) => open.lastOf(address, identity, sinceMs)),
    typicalDuration: (model) => attempt((open) => open.typicalDuration(address, model)),
  }
}

type Attempt = <Result>(work: (journal: Journal) => Result) => Result | undefined

function createNote(attempt: Attempt, intent: Intent): CreateNote {
  let place: IntentRow | undefined
  let last: CreateOutcome | undefined
  const there = <Result>(work: (journal: Journal, place: IntentRow) => Result): Result | undefined => {
    const at = place
    return at === undefined ? undefined : attempt((journal) => work(journal, at))
  }
  /** A journal that was quarantined meanwhile has lost the intent: it is written again, and the new row is returned. */
  const keep = (journal: Journal, at: IntentRow, write: (place: IntentRow) => boolean): IntentRow => {
    if (write(at)) return at
    const again = journal.intend(intent)
    write(again)
    return again
  }
  return {
    sending() {
      place ??= attempt((journal) => journal.intend(intent))
    },
    unsent() {
      there((journal, at) => journal.retract(at))
      place = undefined
    },
    answered(outcome) {
      last = outcome
    },
    accepted: (id, body) => {
      there((journal, at) => keep(journal, at, (to) => journal.accept(to, id, statusIn(body))))
    },
    unknown: (error) =>
      there((journal, at) => {
        const doubt = { ...doubtOf(error), ...answerOf(last) }
        return keep(journal, at, (to) => journal.markUnconfirmed(to, doubt)).key
      }),
  }
}

const doubtOf = ({ code, message, httpStatus }: RushesError): UnknownOutcome => ({
  code,
  message,
  answerStatus: httpStatus,
})

const answerOf = (outcome: CreateOutcome | undefined): Partial<UnknownOutcome> =>
  outcome?.kind === 'nameless' || outcome?.kind === 'unknown' ? { answer: outcome.text } : {}

const statusIn = (body: unknown): string | undefined => {
  const status =
    typeof body === 'object' && body !== null ? (body as Record<string, unknown>).status : undefined
  return typeof status === 'string' && status !== '' ? status : undefined
}

/**
 * The journal, for commands that create runs. When it cannot be written, one warning says what that means, and the command
 * continues: a paid run is worth more than its row. Where a create is repeated by its name, in a session or a batch, its
 * intent is required instead: nothing is sent without it.
 */

import { resolve } from 'node:path'
import type { CreateOutcome } from '../../client/index.js'
import type { DownloadedFile } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type {
  Intent,
  IntentRow,
  Journal,
  JournalFile,
  JournalRun,
  KnownCreate,
  NamedRequest,
  StatusUpdate,
  TypicalDuration,
  UnknownOutcome,
} from '../../journal/index.js'
import { RepeatedRequest } from '../../journal/index.js'
import { createJournalWrites, type JournalWrites, type JournalWritesOptions } from './journal-writes.js'

/** What the journal keeps of one create. */
export interface CreateNote {
  /**
   * Directly before the bytes are sent; again before every further sending. Throws `RepeatedRequest`, and where the intent is
   * required another `RushesError`.
   */
  sending(): void
  /** It was certainly not accepted. */
  unsent(): void
  answered(outcome: CreateOutcome): void
  accepted(id: string, body: unknown): void
  /** Its outcome is not known, or it was accepted without an id. Returns the key of its row. */
  unknown(error: RushesError): string | undefined
}

export interface Recorder {
  /** `need`: whether the create may be sent when the journal cannot be written. */
  note(intent: Omit<Intent, 'address' | 'profile'>, need?: 'required' | 'best effort'): CreateNote
  /** Records that the creates with these tokens (request ids) were not sent. Throws when the journal cannot be written. */
  prepare(tokens: readonly string[]): void
  /**
   * Takes the record of a create that was not sent: no other process can send it now. False when it is gone. Throws as
   * `prepare`.
   */
  unprepare(token: string): boolean
  /** Undefined when nothing is known of it: it may have been sent from another machine. */
  createOf(token: string): KnownCreate | undefined
  /** The newest create with this request id. Throws where the journal cannot be read, or lacks what was to be written. */
  findByRequest(requestId: string): NamedRequest | undefined
  recordStatus(update: StatusUpdate): void
  /** No process renders these local runs any longer: the journal shows them as queued, unless they have ended. */
  recordQueued(...ids: readonly string[]): void
  /** The service says that it has no such run. */
  recordNotFound(error: RushesError, id: string): void
  recordFiles(id: string, files: readonly DownloadedFile[]): void
  /** The files of a run that earlier commands downloaded. */
  filesOf(id: string): readonly JournalFile[]
  find(id: string): JournalRun | undefined
  typicalDuration(model: string): TypicalDuration | undefined
  durations(model: string): readonly number[]
  /** The command ends: tries once more to write what could not be written. Throws nothing. */
  end(): void
}

export interface RecorderOptions extends JournalWritesOptions {
  readonly address: string
  readonly profile: string
}

export function createRecorder({ address, profile, ...options }: RecorderOptions): Recorder {
  const writes = createJournalWrites(options)
  const { read, readWhole, bestEffort, repeated, required, end } = writes
  return {
    note: (intent, need = 'best effort') =>
      createNote(writes, { ...intent, address, profile }, need === 'required'),
    prepare: (tokens) => required((open) => open.prepare(address, tokens)),
    unprepare: (token) => required((open) => open.unprepare(address, token)),
    createOf: (token) => read((open) => open.createOf(address, token)),
    findByRequest: (requestId) => readWhole((open) => open.findByRequest(address, requestId)),
    recordStatus: (update) =>
      (update.state.phase === 'going' ? bestEffort : repeated)((open) => open.recordStatus(address, update)),
    recordQueued: (...ids) => bestEffort((open) => open.recordQueued(address, ids)),
    recordNotFound: (error, id) => repeated((open) => open.recordNotFound(address, id, doubtOf(error))),
    recordFiles: (id, files) =>
      repeated((open) =>
        open.recordFiles(
          address,
          id,
          // Bytes that were written to standard output have no file.
          files.filter(({ path }) => path !== '-').map((file) => ({ ...file, path: resolve(file.path) })),
        ),
      ),
    filesOf: (id) =>
      read((open) => {
        const run = open.find(address, id)
        return run === undefined ? [] : open.filesOf(run)
      }) ?? [],
    find: (id) => read((open) => open.find(address, id)),
    durations: (model) => read((open) => open.durations(address, model)) ?? [],
    typicalDuration: (model) => read((open) => open.typicalDuration(address, model)),
    end,
  }
}

function createNote(
  { bestEffort, repeated, required }: JournalWrites,
  intent: Intent,
  isRequired: boolean,
): CreateNote {
  let place: IntentRow | undefined
  let last: CreateOutcome | undefined
  /**
   * Writes the outcome to the row of the intent, and returns that row. Where there is none, the intent is written again: it
   * could not be written, or the journal was quarantined meanwhile.
   */
  const keep = (journal: Journal, write: (place: IntentRow) => boolean): IntentRow => {
    if (place !== undefined && write(place)) return place
    place = intendAgain(journal)
    write(place)
    return place
  }
  /** Without the request id where another process has taken it meanwhile, in a new file: the run is paid for all the same. */
  const intendAgain = (journal: Journal): IntentRow => {
    try {
      return journal.intend({ ...intent, isPrepared: false })
    } catch (error) {
      if (!(error instanceof RepeatedRequest)) throw error
      return journal.intend({ ...intent, isPrepared: false, requestId: undefined })
    }
  }
  return {
    sending() {
      place ??= (isRequired ? required : bestEffort)((journal) => journal.intend(intent))
    },
    unsent() {
      const at = place
      place = undefined
      if (at !== undefined) repeated((journal) => journal.retract(at))
    },
    answered(outcome) {
      last = outcome
    },
    accepted: (id, body) => {
      repeated((journal) => keep(journal, (to) => journal.accept(to, id, statusIn(body))))
    },
    unknown: (error) => {
      const doubt = { ...doubtOf(error), ...answerOf(last) }
      return repeated((journal) => keep(journal, (to) => journal.markUnconfirmed(to, doubt)))?.key
    },
  }
}

const doubtOf = ({ code, message, httpStatus }: RushesError): UnknownOutcome => ({
  code,
  message,
  answerStatus: httpStatus,
})

const answerOf = (outcome: CreateOutcome | undefined): Partial<UnknownOutcome> =>
  outcome?.kind === 'nameless' || outcome?.kind === 'unknown' ? { answer: outcome.text } : {}

/** The status that the response to a create names. */
export const statusIn = (body: unknown): string | undefined => {
  const status =
    typeof body === 'object' && body !== null ? (body as Record<string, unknown>).status : undefined
  return typeof status === 'string' && status !== '' ? status : undefined
}

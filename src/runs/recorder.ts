/**
 * Writes the journal for commands that create runs. If it cannot be written, prints one warning about the consequences
 * and continues: a paid run is worth more than its row. Sessions and batches repeat creates by request id, so they
 * require the intent in the journal: without it, nothing is sent.
 */
import { resolve } from 'node:path'
import type { CreateOutcome } from '../client/index.js'
import type { DownloadedFile } from '../download/index.js'
import type { RushesError } from '../errors.js'
import {
  type Intent,
  type IntentRow,
  type Journal,
  type JournalFile,
  type JournalRun,
  type KnownCreate,
  type NamedRequest,
  RepeatedRequest,
  type StatusUpdate,
  type UnknownOutcome,
} from '../journal/index.js'
import { isObject } from '../protocol/parse.js'
import { createJournalWrites, type JournalWrites, type JournalWritesOptions } from './journal-writes.js'

/** Records the steps of one create in the journal. */
export interface CreateNote {
  /**
   * Called directly before the create is sent, and before each retry. Throws `RepeatedRequest`. If the intent is
   * required, also throws other `RushesError`s.
   */
  sending(): void
  /** Called if the service definitely did not accept the create. */
  unsent(): void
  answered(outcome: CreateOutcome): void
  accepted(id: string, body: unknown): void
  /** Called if the outcome is unknown, or if the run was accepted without an id. Returns the key of the row. */
  unknown(error: RushesError): string | undefined
}

export interface Recorder {
  /** `need`: whether the create may be sent if the journal cannot be written. */
  note(intent: Omit<Intent, 'address' | 'profile' | 'folder'>, need?: 'required' | 'best effort'): CreateNote
  /**
   * Records that the creates with these tokens (request ids) were not sent. Throws if the journal cannot be written.
   */
  prepare(tokens: readonly string[]): void
  /**
   * Removes the record of an unsent create, so that no other process can send it. False if there is none. Throws like
   * `prepare`.
   */
  unprepare(token: string): boolean
  /** Undefined if the journal does not contain the create: another machine may have sent it. */
  createOf(token: string): KnownCreate | undefined
  /**
   * The newest create with this request id. Throws if the journal cannot be read, or if earlier writes to it failed.
   */
  findByRequest(requestId: string): NamedRequest | undefined
  recordStatus(update: StatusUpdate): void
  /** Marks local runs as queued, unless they have ended: no process renders them now. */
  recordQueued(...ids: readonly string[]): void
  /** Records that the service does not know the run. */
  recordNotFound(error: RushesError, id: string): void
  recordFiles(id: string, files: readonly DownloadedFile[]): void
  /** The files of a run that earlier commands downloaded. */
  filesOf(id: string): readonly JournalFile[]
  find(id: string): JournalRun | undefined
  durations(model: string): readonly number[]
  /** Called when the command ends: retries failed writes once. Never throws. */
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
      createNote(writes, { ...intent, address, profile, folder: resolve('.') }, need === 'required'),
    prepare: (tokens) => required((open) => open.prepare(address, tokens)),
    unprepare: (token) => required((open) => open.unprepare(address, token)),
    createOf: (token) => read((open) => open.createOf(address, token)),
    findByRequest: (requestId) => readWhole((open) => open.findByRequest(address, requestId)),
    recordStatus: (update) =>
      (update.state.phase === 'running' ? bestEffort : repeated)((open) =>
        open.recordStatus(address, update),
      ),
    recordQueued: (...ids) => bestEffort((open) => open.recordQueued(address, ids)),
    recordNotFound: (error, id) => repeated((open) => open.recordNotFound(address, id, doubtOf(error))),
    recordFiles: (id, files) =>
      repeated((open) =>
        open.recordFiles(
          address,
          id,
          // Bytes written to standard output have no file.
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
    end,
  }
}

function createNote(
  { bestEffort, repeated, required }: JournalWrites,
  intent: Intent,
  isRequired: boolean,
): CreateNote {
  let intentRow: IntentRow | undefined
  let last: CreateOutcome | undefined
  /**
   * Writes the outcome to the row of the intent, and returns that row. Writes the intent again if there is no row: the
   * first write failed, or the journal was quarantined.
   */
  const writeOutcome = (journal: Journal, write: (intentRow: IntentRow) => boolean): IntentRow => {
    if (intentRow !== undefined && write(intentRow)) return intentRow
    intentRow = intendAgain(journal)
    write(intentRow)
    return intentRow
  }
  /**
   * Omits the request id if another process has used it in a new journal file: the run is paid for, so it is recorded
   * in any case.
   */
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
      intentRow ??= (isRequired ? required : bestEffort)((journal) => journal.intend(intent))
    },
    unsent() {
      const at = intentRow
      intentRow = undefined
      if (at !== undefined) repeated((journal) => journal.retract(at))
    },
    answered(outcome) {
      last = outcome
    },
    accepted: (id, body) => {
      repeated((journal) =>
        writeOutcome(journal, (to) => journal.accept(to, id, statusIn(body), seedIn(body))),
      )
    },
    unknown: (error) => {
      const doubt = { ...doubtOf(error), ...answerOf(last) }
      return repeated((journal) => writeOutcome(journal, (to) => journal.markUnconfirmed(to, doubt)))?.key
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

/** The seed in the response to a create. */
function seedIn(body: unknown): number | bigint | undefined {
  const seed = isObject(body) && isObject(body.input) ? body.input.seed : undefined
  return typeof seed === 'bigint' || Number.isSafeInteger(seed) ? (seed as number | bigint) : undefined
}

/** The status in the response to a create. */
export const statusIn = (body: unknown): string | undefined => {
  const status = isObject(body) ? body.status : undefined
  return typeof status === 'string' && status !== '' ? status : undefined
}

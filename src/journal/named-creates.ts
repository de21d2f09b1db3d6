/**
 * Creates that have a request id, chosen by the client, so that each is sent and paid once. A batch writes the request id
 * into its lock file before the create is sent. If it is killed between the two, the record here proves that nothing was
 * sent.
 */
import { RushesError } from '../errors.js'
import type { OpenDatabase } from '../host/database.js'
import { type JournalRun, runOfRow } from './journal-run.js'

/** A row with a request id, and the hash of the request that it was sent for. */
export interface NamedRequest {
  readonly run: JournalRun
  readonly identity: string
}

export interface NamedCreate {
  readonly address: string
  readonly requestId: string
}

export type KnownCreate =
  /** Prepared, or certainly not accepted. */
  | { readonly state: 'unsent' }
  /** The run is in any phase: `sending` while its process lives, `unconfirmed` when that has ended. */
  | { readonly state: 'sent'; readonly run: JournalRun }

/** The journal has a row with this request id already: sending it again would pay twice. */
export class RepeatedRequest extends RushesError {
  constructor(
    requestId: string,
    message = `A create with the request id "${requestId}" was sent before. Nothing was sent.`,
    hint = 'Repeat the call with the same request id to get its run.',
  ) {
    super('usage', message, { hint })
  }
}

/** Another process has taken the record that the create was not sent, and may have sent it in this one's place. */
export class NotPrepared extends RepeatedRequest {
  constructor(requestId: string) {
    super(
      requestId,
      'Another batch has taken over this create. It was not sent here.',
      'Run the same command again when no other batch is running on this manifest.',
    )
  }
}

export function findByRequest(
  db: OpenDatabase,
  address: string,
  requestId: string,
): NamedRequest | undefined {
  const row = db.get(
    'SELECT * FROM runs WHERE address = ? AND request_id = ? ORDER BY row DESC LIMIT 1',
    address,
    requestId,
  )
  return row === undefined ? undefined : { run: runOfRow(row), identity: String(row.identity) }
}

/** A row takes about 100 bytes. A batch that is continued later than this finds the create unconfirmed. */
const MAX_AGE_MS = 365 * 24 * 3_600_000

/** Records that the creates were not sent; those that were sent stay as they are. */
export const prepareCreates = (
  db: OpenDatabase,
  address: string,
  requestIds: readonly string[],
  nowMs: number,
): void =>
  db.transaction(() => {
    db.run('DELETE FROM prepared WHERE prepared_at < ?', nowMs - MAX_AGE_MS)
    for (const requestId of requestIds)
      db.run(
        `INSERT OR IGNORE INTO prepared (address, request_id, prepared_at) SELECT ?1, ?2, ?3
         WHERE NOT EXISTS (SELECT 1 FROM runs WHERE address = ?1 AND request_id = ?2)`,
        address,
        requestId,
        nowMs,
      )
  })

/** Whether it was prepared. */
export const unprepareCreate = (db: OpenDatabase, address: string, requestId: string): boolean =>
  db.run('DELETE FROM prepared WHERE address = ? AND request_id = ?', address, requestId).changes > 0

/** Undefined when nothing is known of it, as when it was prepared on another machine. */
export function findCreate(db: OpenDatabase, address: string, requestId: string): KnownCreate | undefined {
  const sent = findByRequest(db, address, requestId)
  if (sent !== undefined) return { state: 'sent', run: sent.run }
  const isPrepared =
    db.get('SELECT 1 FROM prepared WHERE address = ? AND request_id = ?', address, requestId) !== undefined
  return isPrepared ? { state: 'unsent' } : undefined
}

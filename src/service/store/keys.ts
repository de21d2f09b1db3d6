/** API keys, of which only the SHA-256 (hex) is stored. */
import type { KeyRecord } from '../rules/key-checks.js'
import type { KeyTerms } from '../rules/key-terms.js'
import { keyOf, termColumns } from './rows.js'
import { checkSession, type Database, insert, type SessionProof, type Transaction, update } from './sql.js'

export interface NewKey extends Partial<KeyTerms> {
  readonly accountId: number
  readonly hash: string
  readonly prefix: string
  readonly name: string
  readonly nowMs: number
  /** Of a user who creates the key. Undefined: an administrator. */
  readonly by?: SessionProof | undefined
}

export interface KeyDetails extends KeyTerms {
  readonly id: number
  readonly account: string
  /** First characters of the key. Undefined for a key from a version that did not store them. */
  readonly prefix: string | undefined
  readonly spent: number
  /** Number of accepted runs. */
  readonly used: number
  readonly createdAtMs: number
  /** Time of the last use, accurate to one minute. */
  readonly usedAtMs: number | undefined
}

/** Not `*`, because libsql spends most of a read on columns. The last use is accurate to the minute, so it can be before the creation. */
export const KEYS = `
    SELECT keys.id, keys.name, keys.prefix, keys.disabled, keys.expires_at, keys.spend_limit, keys.spent, keys.quota, keys.used,
      keys.allowed_ips, keys.rate_requests, keys.rate_window_ms, keys.created_at, accounts.name AS account,
      CASE WHEN keys.last_used_at < keys.created_at THEN keys.created_at ELSE keys.last_used_at END AS used_at
    FROM keys JOIN accounts ON accounts.id = keys.account_id`

// Only the columns that the key check needs, because every request reads them.
const FIND_KEY = `
    SELECT keys.id, keys.account_id, keys.disabled, keys.expires_at, keys.allowed_ips, keys.rate_requests,
      keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.hash = :hash`

export function createKeyStore({ transaction, repeatable, snapshot, get, run }: Database) {
  async function insertKey(tx: Transaction, { accountId, hash, prefix, nowMs, ...terms }: NewKey) {
    const row = { account_id: accountId, hash, prefix, created_at: nowMs, ...termColumns(terms) }
    return Number((await tx.get(...insert('keys', row, 'RETURNING id')))?.id)
  }

  return {
    /** Returns the id. */
    addKey: ({ by, ...key }: NewKey): Promise<number> =>
      transaction(async (tx) => {
        await checkSession(tx, by)
        return await insertKey(tx, key)
      }),
    /** Adds the key only if the store has no key. Returns whether the key was added. */
    addFirstKey: (key: NewKey): Promise<boolean> =>
      transaction(async (tx) => {
        // Nodes that start at the same time add the first key of the same account.
        await tx.get('SELECT id FROM accounts WHERE id = :id {lock}', { id: key.accountId })
        if ((await tx.get('SELECT id FROM keys LIMIT 1')) !== undefined) return false
        await insertKey(tx, key)
        return true
      }),
    async findKey(hash: string): Promise<KeyRecord | undefined> {
      const row = await get(FIND_KEY, { hash })
      return row && keyOf(row)
    },
    /** Lists all keys, those of an account, or those with a name or number. */
    async listKeys(of: { readonly account?: string; readonly key?: string } = {}) {
      const where =
        of.key === undefined
          ? of.account === undefined
            ? ''
            : 'WHERE accounts.name = :account'
          : 'WHERE keys.name = :key OR CAST(keys.id AS text) = :key'
      const rows = await snapshot((read) => read.all(`${KEYS} ${where} ORDER BY keys.id`, of))
      return rows.map((row) => keyOf<KeyDetails>(row))
    },
    /** Sets every term that `changes` contains, even if its value is undefined. Returns false if the key does not exist. */
    changeKey: (id: number, changes: Partial<KeyTerms>, by?: SessionProof): Promise<boolean> =>
      repeatable(async (tx) => {
        await checkSession(tx, by)
        const row = await tx.get(`${KEYS} WHERE keys.id = :id {lock OF keys}`, { id })
        if (row === undefined) return false
        await tx.run(...update('keys', id, termColumns({ ...keyOf<KeyDetails>(row), ...changes })))
        return true
      }),
    /** Never moves the time back, because several nodes record the use of the same key. */
    recordKeyUse: async (id: number, usedAtMs: number): Promise<void> =>
      void (await run(
        'UPDATE keys SET last_used_at = :usedAtMs WHERE id = :id AND coalesce(last_used_at < :usedAtMs, true)',
        { id, usedAtMs },
      )),
  }
}

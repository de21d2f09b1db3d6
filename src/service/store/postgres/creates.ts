/** Adds runs. Creates of one account that wait at the same time share a transaction. */
import { writeJson } from '../../../protocol/json.js'
import type { AccountState } from '../../rules/key-checks.js'
import type { AddedRun, FileName, NewRun } from '../contract.js'
import { accountStateOfRow, keylessStateOf, newRunColumns } from '../rows.js'
import type { Change, Outcome, PostgresDatabase, Transaction } from './database.js'
import { type Row, statementsOf } from './driver.js'

/** A new run with its input as the stored text, which is serialized only once. */
type RunWithText = NewRun & { readonly inputText: string }

interface Create {
  readonly run: RunWithText
  check(account: AccountState): void
}

/**
 * Columns of a new run, with their PostgreSQL types. The input is text, because PostgreSQL's JSON types reject \u0000.
 */
const COLUMNS = {
  id: 'text',
  account_id: 'bigint',
  key_id: 'bigint',
  model: 'text',
  kind: 'text',
  prompt: 'text',
  aspect_ratio: 'text',
  price: 'bigint',
  created_at: 'bigint',
  input: 'text',
} as const satisfies Record<keyof ReturnType<typeof newRunColumns> | 'input', string>

const names = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]

const recordOf = (run: RunWithText) => ({ ...newRunColumns(run), input: run.inputText })

/**
 * Statement for one run. It takes two thirds of the time of `addRunsSql` with one run. The parameters are the columns
 * in their order.
 */
function addRunSql(): string {
  const value = (column: keyof typeof COLUMNS) => `$${names.indexOf(column) + 1}::${COLUMNS[column]}`
  return `
    WITH paid AS (
      UPDATE accounts SET balance = balance - ${value('price')} WHERE id = ${value('account_id')} AND ${value('price')} <> 0
    ),
    spent AS (
      UPDATE keys SET spent = spent + ${value('price')}, used = used + 1 WHERE id = ${value('key_id')}
    ),
    added AS (
      INSERT INTO runs (${names.join(', ')}, status) VALUES (${names.map(value).join(', ')}, 'queued')
    )
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    SELECT ${value('account_id')}, 'charge', -${value('price')}, ${value('id')}, ${value('key_id')}, ${value('created_at')}
    WHERE ${value('price')} <> 0`
}

function addRunsSql(): string {
  return `
    WITH new AS MATERIALIZED (
      SELECT * FROM json_to_recordset($2) AS new (${names.map((name) => `${name} ${COLUMNS[name]}`).join(', ')})
    ),
    paid AS (
      UPDATE accounts SET balance = balance - charge.amount
      FROM (SELECT sum(price)::bigint AS amount FROM new) AS charge
      WHERE accounts.id = $1 AND charge.amount <> 0
    ),
    spent AS (
      UPDATE keys SET spent = spent + (SELECT sum(price)::bigint FROM new WHERE new.key_id = keys.id),
        used = used + (SELECT count(*) FROM new WHERE new.key_id = keys.id)
      WHERE id = ANY (ARRAY(SELECT key_id FROM new))
    ),
    added AS (
      INSERT INTO runs (${names.join(', ')}, status) SELECT ${names.join(', ')}, 'queued' FROM new
    )
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    SELECT $1, 'charge', -price, id, key_id, created_at FROM new WHERE price <> 0`
}

// Passes several values as an array or JSON that the planner cannot inspect. Otherwise it would plan every call again.
const SQL = statementsOf({
  // Locks the account and then its keys, until the runs are charged.
  accountStates: `
    SELECT keys.id, keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance,
      accounts.banned
    FROM accounts JOIN keys ON keys.account_id = accounts.id
    WHERE accounts.id = $1 AND keys.id = ANY (ARRAY(SELECT unnest($2::bigint[])))
    FOR NO KEY UPDATE OF accounts, keys`,

  // Locks the account of runs without a key.
  lockBalance: `SELECT balance, banned FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,

  existingRuns: `SELECT id FROM runs WHERE id = ANY ($1::text[])`,

  createdBefore: `
    SELECT key, run_id, request FROM idempotency_keys
    WHERE account_id = $1 AND key = ANY ($2::text[]) AND expires_at > $3`,

  // Locks the files until the commit, so that no sweep marks them. Always in the same order, so that creates with the
  // same images do not deadlock.
  liveFiles: `
    SELECT kind, key, state FROM files
    WHERE (kind, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))
      AND (state = 'stored' OR kind = 'input' AND state = 'writing')
    ORDER BY kind, key FOR NO KEY UPDATE`,

  recordImages: `UPDATE files SET state = 'stored' WHERE kind = 'input' AND key = ANY ($1::text[])`,

  addRunFiles: `
    INSERT INTO run_files (run_id, kind, key) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
    ON CONFLICT DO NOTHING`,

  removeExpiredKeys: `DELETE FROM idempotency_keys WHERE account_id = $1 AND expires_at <= $2`,

  addIdempotencyKeys: `
    INSERT INTO idempotency_keys (account_id, key, request, run_id, expires_at)
    SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[])`,

  addRun: addRunSql(),
  addRuns: addRunsSql(),
})

/** Creates the function `addRun` of the contract. */
export function createRunAdder({ merged }: Pick<PostgresDatabase, 'merged'>) {
  const add = merged<Create, AddedRun>(async (tx, creates) => {
    const accountId = creates[0]?.item.run.accountId ?? 0
    const keyIds = new Set(creates.flatMap(({ item }) => item.run.keyId ?? []))
    // Sends all statements at once. The first one locks the account, so a commit in progress has ended before the
    // others look for its runs.
    const [states, existing, reserved, live] = await Promise.all([
      keyIds.size === 0
        ? tx.all(SQL.lockBalance, accountId)
        : tx.all(SQL.accountStates, accountId, [...keyIds]),
      findExisting(creates, (ids) => tx.all(SQL.existingRuns, ids)),
      findReserved(tx, accountId, creates),
      findLive(tx, creates),
    ])
    const charge = chargesOn(states)
    const accepted: RunWithText[] = []
    const outcomes = creates.map(({ item: { run, check } }): Outcome<AddedRun> => {
      const { id, idempotency, files = [] } = run
      if (existing.has(id)) return { value: { id } }
      const before = idempotency && reserved.get(idempotency.key)
      if (before !== undefined)
        return {
          value: before.request === idempotency?.request ? { id: before.id } : { refused: 'key_reused' },
        }
      if (files.some((file) => file.kind === 'input' && !live.has(nameOf(file))))
        return { value: { refused: 'file_removed' } }
      try {
        charge(run, check)
      } catch (error) {
        return { error, isUnknown: false }
      }
      accepted.push({ ...run, files: files.filter((file) => live.has(nameOf(file))) })
      if (idempotency !== undefined) reserved.set(idempotency.key, { id, request: idempotency.request })
      return { value: { id } }
    })
    await commit(tx, accountId, accepted, live)
    return outcomes
  }, bytesOf)
  return (run: NewRun, check: Create['check']): Promise<AddedRun> =>
    add(run.accountId, { run: { ...run, inputText: writeJson(run.input) }, check })
}

const bytesOf = ({ run }: Create): number => Buffer.byteLength(run.inputText)

const nameOf = ({ kind, key }: FileName): string => `${kind} ${key}`

type Reserved = Map<string, { readonly id: string; readonly request: string }>

/** Finds the runs that earlier creates with these idempotency keys have made. */
async function findReserved(
  tx: Transaction,
  accountId: number,
  creates: readonly Change<Create>[],
): Promise<Reserved> {
  const runs = creates.map(({ item }) => item.run)
  const keys = runs.flatMap(({ idempotency }) => idempotency?.key ?? [])
  if (keys.length === 0) return new Map()
  const nowMs = Math.min(...runs.map(({ createdAtMs }) => createdAtMs))
  const rows = await tx.all(SQL.createdBefore, accountId, keys, nowMs)
  return new Map(
    rows.map((row) => [String(row.key), { id: String(row.run_id), request: String(row.request) }]),
  )
}

/** States, by name, of the files that these creates need and that are not being removed. */
type LiveFiles = ReadonlyMap<string, unknown>

async function findLive(tx: Transaction, creates: readonly Change<Create>[]): Promise<LiveFiles> {
  const files = creates.flatMap(({ item }) => item.run.files ?? [])
  if (files.length === 0) return new Map()
  const rows = await tx.all(
    SQL.liveFiles,
    files.map(({ kind }) => kind),
    files.map(({ key }) => key),
  )
  return new Map(rows.map(({ kind, key, state }) => [`${kind} ${key}`, state]))
}

async function commit(
  tx: Transaction,
  accountId: number,
  runs: readonly RunWithText[],
  live: LiveFiles,
): Promise<void> {
  const [first, ...others] = runs
  if (first === undefined) return
  await addRunFiles(tx, runs, live)
  await addIdempotencyKeys(tx, accountId, runs)
  if (others.length > 0) await tx.commitWith(SQL.addRuns, accountId, JSON.stringify(runs.map(recordOf)))
  else {
    const record = recordOf(first)
    await tx.commitWith(SQL.addRun, ...names.map((name) => record[name]))
  }
}

async function addRunFiles(tx: Transaction, runs: readonly NewRun[], live: LiveFiles): Promise<void> {
  const needed = runs.flatMap(({ id, files = [] }) => files.map((file) => ({ ...file, id })))
  if (needed.length === 0) return
  const written = needed.filter((file) => live.get(nameOf(file)) === 'writing')
  if (written.length > 0)
    await tx.run(
      SQL.recordImages,
      written.map(({ key }) => key),
    )
  await tx.run(
    SQL.addRunFiles,
    needed.map(({ id }) => id),
    needed.map(({ kind }) => kind),
    needed.map(({ key }) => key),
  )
}

async function addIdempotencyKeys(
  tx: Transaction,
  accountId: number,
  runs: readonly NewRun[],
): Promise<void> {
  const keyed = runs.flatMap(({ id, idempotency }) => (idempotency ? [{ ...idempotency, id }] : []))
  if (keyed.length === 0) return
  await tx.run(SQL.removeExpiredKeys, accountId, Math.min(...runs.map(({ createdAtMs }) => createdAtMs)))
  await tx.run(
    SQL.addIdempotencyKeys,
    accountId,
    keyed.map(({ key }) => key),
    keyed.map(({ request }) => request),
    keyed.map(({ id }) => id),
    keyed.map(({ expiresAtMs }) => expiresAtMs),
  )
}

/** Finds the ids of the runs that an earlier attempt has added. */
async function findExisting(
  creates: readonly Change<Create>[],
  find: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<ReadonlySet<string>> {
  const ids = creates.flatMap(({ item, mayHaveCommitted }) => (mayHaveCommitted ? item.run.id : []))
  return new Set(ids.length === 0 ? [] : (await find(ids)).map(({ id }) => String(id)))
}

/** Checks one run after the other. Each check sees the state that the runs before it leave. */
function chargesOn(rows: readonly Row[]) {
  const states = new Map(rows.map((row) => [Number(row.id), accountStateOfRow(row)]))
  const [first] = rows
  let paid = 0
  return ({ accountId, keyId, price }: NewRun, check: Create['check']): void => {
    if (keyId === undefined) {
      if (first === undefined) throw new Error(`Account ${accountId} does not exist.`)
      if (price > 0) check(keylessStateOf({ ...first, balance: Number(first.balance) - paid }))
    } else {
      const state = states.get(keyId)
      if (state === undefined) throw new Error(`Key ${keyId} does not exist.`)
      check({ ...state, balance: state.balance - paid })
      states.set(keyId, { ...state, spent: state.spent + price, used: state.used + 1 })
    }
    paid += price
  }
}

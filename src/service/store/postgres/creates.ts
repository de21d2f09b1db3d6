/** Creates: those of one account that wait together share a transaction. */
import type { AccountState } from '../../rules/budget.js'
import type { NewRun } from '../contract.js'
import { accountStateOfRow, keylessStateOf } from '../shared-rows.js'
import type { Change, Outcome, PostgresDatabase, Transaction } from './database.js'
import { type Row, statementsOf } from './driver.js'
import { imagesOf } from './stored-images.js'
import { promptOf } from './stored-prompt.js'

interface Create {
  readonly run: NewRun
  check(account: AccountState): void
}

// Arrays and records that the planner cannot see into: with others it would plan each call anew.
const SQL = statementsOf({
  // The account and then its keys, locked in this order until the runs are charged.
  accountStates: `
    SELECT keys.id, keys.spent, keys.spend_limit, keys.used, keys.quota, accounts.balance
    FROM accounts JOIN keys ON keys.account_id = accounts.id
    WHERE accounts.id = $1 AND keys.id = ANY (ARRAY(SELECT unnest($2::bigint[])))
    FOR NO KEY UPDATE OF accounts, keys`,

  // For runs without a key.
  lockBalance: `SELECT balance FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,

  existingRuns: `SELECT id FROM runs WHERE id = ANY ($1::text[])`,

  // One run alone takes two thirds of the time of addRuns with one.
  addRun: `
    WITH paid AS (
      UPDATE accounts SET balance = balance - $7 WHERE id = $2 AND $7 <> 0
    ),
    spent AS (
      UPDATE keys SET spent = spent + $7, used = used + 1 WHERE id = $3
    ),
    added AS (
      INSERT INTO runs (id, account_id, key_id, model, kind, input, price, status, created_at, images, prompt)
      VALUES ($1, $2, $3::bigint, $4, $5, $6, $7::bigint, 'queued', $8::bigint, $9::text[], $10::text)
    )
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    SELECT $2, 'charge', -$7::bigint, $1, $3::bigint, $8::bigint WHERE $7::bigint <> 0`,

  addRuns: `
    WITH new AS MATERIALIZED (
      SELECT * FROM json_to_recordset($2) AS new (
        id text, key_id bigint, model text, kind text, input text, images text[], prompt text, price bigint, created_at bigint
      )
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
      INSERT INTO runs (id, account_id, key_id, model, kind, input, images, prompt, price, status, created_at)
      SELECT id, $1, key_id, model, kind, input, images, prompt, price, 'queued', created_at FROM new
    )
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    SELECT $1, 'charge', -price, id, key_id, created_at FROM new WHERE price <> 0`,
})

/** As `addRun` of the contract. */
export function createRunAdder({ merged }: Pick<PostgresDatabase, 'merged'>) {
  const add = merged<Create, void>(async (tx, creates) => {
    const accountId = creates[0]?.item.run.accountId ?? 0
    const keyIds = new Set(creates.flatMap(({ item }) => item.run.keyId ?? []))
    // Sent together. The account is locked first, so a commit in progress has ended when its runs are looked for.
    const [states, existing] = await Promise.all([
      keyIds.size === 0
        ? tx.all(SQL.lockBalance, accountId)
        : tx.all(SQL.accountStates, accountId, [...keyIds]),
      findExisting(creates, (ids) => tx.all(SQL.existingRuns, ids)),
    ])
    const charge = chargesOn(states)
    const accepted: NewRun[] = []
    const outcomes = creates.map(({ item: { run, check } }): Outcome<void> => {
      if (existing.has(run.id)) return { value: undefined }
      try {
        charge(run, check)
      } catch (error) {
        return { error, isUnknown: false }
      }
      accepted.push(run)
      return { value: undefined }
    })
    await commit(tx, accepted)
    return outcomes
  })
  return (run: NewRun, check: Create['check']): Promise<void> => add(run.accountId, { run, check })
}

async function commit(tx: Transaction, [first, ...others]: readonly NewRun[]): Promise<void> {
  if (first === undefined) return
  const { id, accountId, keyId, model, kind, input, price, createdAtMs } = first
  if (others.length > 0) {
    const runs = [first, ...others].map(recordOf)
    await tx.commitWith(SQL.addRuns, accountId, JSON.stringify(runs))
  } else {
    const values = [id, accountId, keyId ?? null, model, kind, JSON.stringify(input), price, createdAtMs]
    await tx.commitWith(SQL.addRun, ...values, imagesOf(input), promptOf(input))
  }
}

/** The ids of the runs that an attempt before has added. */
async function findExisting(
  creates: readonly Change<Create>[],
  find: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<ReadonlySet<string>> {
  const ids = creates.flatMap(({ item, mayBeDone }) => (mayBeDone ? item.run.id : []))
  return new Set(ids.length === 0 ? [] : (await find(ids)).map(({ id }) => String(id)))
}

/** Checks one run after the other, each with the state that those before it leave. */
function chargesOn(rows: readonly Row[]) {
  const states = new Map(rows.map((row) => [Number(row.id), accountStateOfRow(row)]))
  const [first] = rows
  let paid = 0
  return ({ accountId, keyId, price }: NewRun, check: Create['check']): void => {
    if (keyId === undefined) {
      if (first === undefined) throw new Error(`Account ${accountId} does not exist.`)
      if (price > 0) check(keylessStateOf(Number(first.balance) - paid))
    } else {
      const state = states.get(keyId)
      if (state === undefined) throw new Error(`Key ${keyId} does not exist.`)
      check({ ...state, balance: state.balance - paid })
      states.set(keyId, { ...state, spent: state.spent + price, used: state.used + 1 })
    }
    paid += price
  }
}

/** As the statement reads it. The input stays a text within it: PostgreSQL's JSON has no \u0000. */
const recordOf = ({ id, keyId, model, kind, input, price, createdAtMs }: NewRun) => ({
  ...{ id, key_id: keyId, model, kind, price, created_at: createdAtMs },
  input: JSON.stringify(input),
  images: imagesOf(input),
  prompt: promptOf(input),
})

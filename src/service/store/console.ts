/** The console's reads of one account. */
import { DAY_MS } from '../rules/times.js'
import type { ConsoleStore, EntryFilter, ListedRun, RunFilter } from './console-store.js'
import {
  accountSummaryOf,
  daySpendOf,
  keyDetailsOfRow,
  listedEntryOf,
  listedRunOf,
  runSummaryOf,
  STORED_RUN_COLUMNS,
} from './rows.js'
import { type Database, type Dialect, hasNul, type Row } from './sql.js'
import { ENTRY_COLUMNS, KEYS } from './statements.js'

/**
 * Only the needed columns, because libsql spends most of a read on columns. The refund is not an EXISTS, for which
 * PostgreSQL may read all refunds.
 */
const RUN_COLUMNS = `${STORED_RUN_COLUMNS}, runs.sequence, runs.key_id, prompt, aspect_ratio, price, crashes, failure, files,
      keys.name AS key_name,
      (SELECT amount FROM credits WHERE credits.run_id = runs.id AND credits.kind = 'refund') AS refund`
const JOIN_KEY = 'LEFT JOIN keys ON keys.id = runs.key_id'

export const consoleStatements = ({ inList, index }: Dialect) => ({
  findAccountById: `SELECT name, balance, banned FROM accounts WHERE id = $1`,

  listRuns: (isOfAccount: boolean, where: string, limit: string) => `
    SELECT ${RUN_COLUMNS} FROM runs${isOfAccount ? index('runs_of_account') : ''} ${JOIN_KEY}
    ${where === '' ? '' : `WHERE ${where}`} ORDER BY runs.sequence DESC LIMIT ${limit}`,

  // Finds the newest row that a page does not scan.
  floorOf: (table: 'runs' | 'credits', isOfAccount: boolean, where: string, offset: string) => `
    SELECT sequence FROM ${table}${isOfAccount ? index(`${table}_of_account`) : ''} ${where === '' ? '' : `WHERE ${where}`}
    ORDER BY sequence DESC LIMIT 1 OFFSET ${offset}`,

  // `+ 0` keeps PostgreSQL's planner off the index of the account's runs until a new database has statistics.
  findRuns: `SELECT ${RUN_COLUMNS} FROM runs ${JOIN_KEY} WHERE runs.id ${inList('$1')} AND runs.account_id + 0 = $2`,

  outputsOfRuns: `
    SELECT * FROM outputs WHERE run_id ${inList('$1')} ORDER BY run_id, position`,

  listAccountKeys: `${KEYS} WHERE keys.account_id = $1 AND keys.id < $2 ORDER BY keys.id DESC LIMIT $3`,

  findAccountKey: `${KEYS} WHERE keys.id = $1 AND keys.account_id = $2`,

  listEntries: (where: string, limit: string) => `
    SELECT ${ENTRY_COLUMNS}, keys.name AS key_name
    FROM credits${index('credits_of_account')} JOIN accounts ON accounts.id = credits.account_id
      LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`,

  spendPerDay: `
    SELECT created_at / ${DAY_MS} * ${DAY_MS} AS at, -sum(amount) AS credits, count(*) FILTER (WHERE amount < 0) AS runs
    FROM credits WHERE account_id = $1 AND kind <> 'added' AND created_at >= $2
    GROUP BY created_at / ${DAY_MS} ORDER BY at`,
})

export function createConsoleStore(database: Database): ConsoleStore {
  const { get, all, dialect } = database
  const SQL = consoleStatements(dialect)

  async function runsOf(rows: readonly Row[]): Promise<readonly ListedRun[]> {
    const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ id }) => String(id))
    const outputs = succeeded.length === 0 ? [] : await all(SQL.outputsOfRuns, succeeded)
    return rows.map((row) => {
      const own = outputs.filter(({ run_id }) => run_id === row.id)
      const isRemoved = own.length > 0 && row.files !== 'kept'
      return { ...listedRunOf(row, runSummaryOf(row, own)), isRemoved }
    })
  }

  /** `count`: maximum number of rows to scan. */
  async function floorOf(
    table: 'runs' | 'credits',
    filter: Range,
    count: number | undefined,
  ): Promise<number | undefined> {
    if (count === undefined) return undefined
    const range = whereOf(rangeConditions(table, filter))
    const row = await get(
      SQL.floorOf(table, filter.accountId !== undefined, range.sql, range.next),
      ...range.values,
      count,
    )
    return row && Number(row.sequence)
  }

  return {
    async findAccount(id) {
      const row = await get(SQL.findAccountById, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const { model = '', search, limit } = filter
      if (hasNul(model, search ?? '')) return { runs: [], next: undefined }
      const floor = await floorOf('runs', filter, maxLookedAt(filter))
      const where = whereOf([...runConditions(filter, floor), [dialect.contains('runs.prompt', '?'), search]])
      // Reads one more run to find out whether another page follows.
      const found = await all(
        SQL.listRuns(filter.accountId !== undefined, where.sql, where.next),
        ...where.values,
        limit + 1,
      )
      const { items: runs, next } = pageOf(await runsOf(found), limit, floor)
      return { runs, next }
    },
    async findRuns(ids, accountId) {
      const known = ids.filter((id) => !hasNul(id))
      return await runsOf(await all(SQL.findRuns, known, accountId))
    },
    listAccountKeys: async ({ accountId, before = Number.MAX_SAFE_INTEGER, limit }) =>
      (await all(SQL.listAccountKeys, accountId, before, limit)).map(keyDetailsOfRow),
    async findAccountKey(id, accountId) {
      const row = await get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const { limit, kind, keyId, fromMs, untilMs } = filter
      const isFiltered = [kind, keyId, fromMs, untilMs].some((each) => each !== undefined)
      const count = isFiltered ? MAX_FILTERED : undefined
      const floor = await floorOf('credits', filter, count)
      const where = whereOf(entryConditions(filter, floor))
      const found = await all(SQL.listEntries(where.sql, where.next), ...where.values, limit + 1)
      const { items: entries, next } = pageOf(found.map(listedEntryOf), limit, floor)
      return { entries, next }
    },
    spendPerDay: async (accountId, fromMs) => (await all(SQL.spendPerDay, accountId, fromMs)).map(daySpendOf),
  }
}

/**
 * A WHERE condition of a console list, with the value for its placeholder `?`. Left out if the value is undefined. Without a
 * placeholder, the value is null.
 */
type Condition = readonly [sql: string, value: string | number | null | undefined]

/** Maximum number of rows that one page scans. A search reads the prompts of runs; other filters read only an index. */
const MAX_SEARCHED = 2_000
const MAX_FILTERED = 50_000

/**
 * Returns the maximum number of runs to scan. Undefined without a filter, because the list then reads only the runs
 * that it shows.
 */
function maxLookedAt({ status, kind, model, key, search }: RunFilter): number | undefined {
  if (search !== undefined) return MAX_SEARCHED
  return [status, kind, model, key].every((each) => each === undefined) ? undefined : MAX_FILTERED
}

/** `floor`: sequence of the newest row that this page does not scan. Undefined if the page scans all older rows. */
function pageOf<Item extends { readonly sequence: number }>(
  found: readonly Item[],
  limit: number,
  floor: number | undefined,
): { readonly items: readonly Item[]; readonly next: number | undefined } {
  const items = found.slice(0, limit)
  if (found.length > limit) return { items, next: items.at(-1)?.sequence }
  return { items, next: floor === undefined ? undefined : floor + 1 }
}

type Range = Partial<Pick<RunFilter, 'accountId' | 'before' | 'after'>>

/** Conditions for the rows to scan: account and sequence. */
const rangeConditions = (
  table: 'runs' | 'credits',
  { accountId, before, after }: Range,
  floor?: number,
): readonly Condition[] => [
  [`${table}.account_id = ?`, accountId],
  [`${table}.sequence < ?`, before],
  [`${table}.sequence > ?`, after],
  [`${table}.sequence > ?`, floor],
]

/** All conditions except the search, which each database writes differently. */
const runConditions = (filter: RunFilter, floor: number | undefined): readonly Condition[] => [
  ...rangeConditions('runs', filter, floor),
  ['runs.status = ?', filter.status],
  ['runs.kind = ?', filter.kind],
  ['runs.model = ?', filter.model],
  filter.key === 'console' ? ['runs.key_id IS NULL', null] : ['runs.key_id = ?', filter.key],
]

const entryConditions = (filter: EntryFilter, floor: number | undefined): readonly Condition[] => [
  ...rangeConditions('credits', filter, floor),
  ['credits.kind = ?', filter.kind],
  ['credits.key_id = ?', filter.keyId],
  ['credits.created_at >= ?', filter.fromMs],
  ['credits.created_at < ?', filter.untilMs],
]

interface Where {
  /** SQL with numbered parameters. */
  readonly sql: string
  readonly values: readonly (string | number)[]
  /** The next free parameter, for example `$3`. */
  readonly next: string
}

function whereOf(conditions: readonly Condition[]): Where {
  const values: (string | number)[] = []
  const parts = conditions.flatMap(([sql, value]) => {
    if (value === undefined) return []
    if (value !== null) values.push(value)
    return sql.replace('?', () => `$${values.length}`)
  })
  return { sql: parts.join(' AND '), values, next: `$${values.length + 1}` }
}

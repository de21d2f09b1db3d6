/** The console's lists. Each function takes a bounded time, even for a large account. */
import type { LocalStatus } from '../../protocol/run-state.js'
import { DAY_MS, dayOf } from '../../protocol/units.js'
import { ENTRY_COLUMNS, type LedgerEntry, type LedgerEntryKind } from './accounts.js'
import { KEYS, type KeyDetails } from './keys.js'
import { keyOf, OUTPUT_COLUMNS, recordOf, STORED_RUN_COLUMNS, summaryOf } from './rows.js'
import type { StoredRun } from './run.js'
import type { Database, Row, Values } from './sql.js'

export interface KeyName {
  readonly id: number
  readonly name: string
}

/** A run in a list. It has no input, which can be 1 MB. */
export interface ListedRun extends Omit<StoredRun, 'input'> {
  /** Number of the run among all runs. A later run has a larger number. */
  readonly sequence: number
  /** First 1,000 characters of the prompt. Undefined if the prompt is not a string. */
  readonly prompt: string | undefined
  readonly aspectRatio: string | undefined
  readonly key: KeyName | undefined
  /** Name of its account. */
  readonly account: string
  /** Price in credits. */
  readonly price: number
  readonly isRefunded: boolean
  /** Whether its outputs were removed. Their URLs stay. */
  readonly isRemoved: boolean
}

interface Page {
  /** Lists only rows with a smaller sequence, and only keys with a smaller id. */
  readonly before?: number | undefined
  readonly limit: number
}

export interface AccountPage extends Page {
  readonly accountId: number
}

export interface RunFilter extends Page {
  /** Undefined: all accounts. */
  readonly accountId: number | undefined
  readonly status?: LocalStatus | undefined
  readonly model?: string | undefined
  readonly key?: number | undefined
  /** Text to find in the stored part of the prompt. Ignores case for ASCII letters only. */
  readonly search?: string | undefined
}

/** A page of runs. With a filter, a page can have fewer runs than the limit, or none, although more pages follow. */
interface FoundRuns {
  readonly runs: readonly ListedRun[]
  /** Value of `before` for the next page. Undefined on the last page. */
  readonly next: number | undefined
}

export interface EntryFilter extends AccountPage {
  readonly kind?: LedgerEntryKind | undefined
  readonly keyId?: number | undefined
}

export interface ListedEntry extends LedgerEntry {
  readonly key: KeyName | undefined
}

/** `next`: continue with the entries before it. There can be more, also if a page has no entries. */
interface FoundEntries {
  readonly entries: readonly ListedEntry[]
  readonly next: number | undefined
}

export interface DaySpend {
  /** UTC date, for example 2026-01-31. */
  readonly day: string
  /** Charges minus refunds. */
  readonly credits: number
  /** Number of charged runs. */
  readonly runs: number
}

/** Maximum number of rows that one page scans. A search reads the prompts of runs; other filters read only an index. */
const MAX_SEARCHED = 2_000
const MAX_FILTERED = 50_000

/**
 * Only the needed columns, because libsql spends most of a read on columns. The refund is not an EXISTS, for which
 * PostgreSQL may read all refunds.
 */
const LISTED_COLUMNS = `${STORED_RUN_COLUMNS}, runs.sequence, runs.key_id, prompt, aspect_ratio, price, failure, files,
      keys.name AS key_name, (SELECT name FROM accounts WHERE accounts.id = runs.account_id) AS account,
      (SELECT amount FROM credits WHERE credits.run_id = runs.id AND credits.kind = 'refund') AS refund`
const JOIN_KEY = 'LEFT JOIN keys ON keys.id = runs.key_id'

/** `+ 0` keeps PostgreSQL's planner off the index of the account's runs until a new database has statistics. */
const FIND_RUNS = `
  SELECT ${LISTED_COLUMNS} FROM runs ${JOIN_KEY} WHERE runs.id {in :ids} AND runs.account_id + 0 = :accountId`

const LIST_ENTRIES = `
  SELECT ${ENTRY_COLUMNS}, keys.name AS key_name
  FROM credits {index credits_of_account} JOIN accounts ON accounts.id = credits.account_id
    LEFT JOIN keys ON keys.id = credits.key_id`

const SPEND_PER_DAY = `
  SELECT created_at / ${DAY_MS} * ${DAY_MS} AS day, CAST(-sum(amount) AS bigint) AS credits,
    count(*) FILTER (WHERE amount < 0) AS runs
  FROM credits WHERE account_id = :accountId AND kind <> 'added' AND created_at >= :fromMs
  GROUP BY created_at / ${DAY_MS} ORDER BY day`

/** Conditions, with the value of each `?`. One whose value is undefined is left out. */
type Conditions = Readonly<Record<string, Values[string]>>

function whereOf(conditions: Conditions): { readonly where: string; readonly values: Values } {
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined)
  const named = given.map(([condition], at) => condition.replace('?', `:value${at}`))
  return {
    where: named.length === 0 ? '' : `WHERE ${named.join(' AND ')}`,
    values: Object.fromEntries(given.map(([, value], at) => [`value${at}`, value])),
  }
}

type Table = 'runs' | 'credits'
type Range = Pick<RunFilter, 'accountId' | 'before'>

/** Conditions for the rows that a page scans. `floor`: the newest row that it does not scan. */
const inRange = (table: Table, { accountId, before }: Range, floor?: number): Conditions => ({
  [`${table}.account_id = ?`]: accountId,
  [`${table}.sequence < ?`]: before,
  [`${table}.sequence > ?`]: floor,
})

/** Finds the newest row that a page does not scan. `count`: maximum number of rows to scan; undefined: no limit. */
async function floorOf({ get }: Database, table: Table, filter: Range, count: number | undefined) {
  if (count === undefined) return undefined
  const { where, values } = whereOf(inRange(table, filter))
  const index = filter.accountId === undefined ? '' : `{index ${table}_of_account}`
  const row = await get(
    `SELECT sequence FROM ${table} ${index} ${where} ORDER BY sequence DESC LIMIT 1 OFFSET :count`,
    { ...values, count },
  )
  return row && Number(row.sequence)
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

const isAny = (...values: readonly unknown[]) => values.some((value) => value !== undefined)

const keyNameOf = ({ key_id, key_name }: Row): KeyName | undefined =>
  key_id === null ? undefined : { id: Number(key_id), name: String(key_name) }

async function runsOf({ all }: Database, rows: readonly Row[]): Promise<readonly ListedRun[]> {
  const ids = rows.filter(({ status }) => status === 'succeeded').map(({ id }) => String(id))
  const list = `SELECT ${OUTPUT_COLUMNS} FROM outputs WHERE run_id {in :ids} ORDER BY run_id, position`
  const outputs = ids.length === 0 ? [] : await all(list, { ids })
  return rows.map(({ key_id, key_name, files, refund, ...row }) => {
    const own = outputs.filter(({ run_id }) => run_id === row.id)
    return {
      ...summaryOf<ListedRun>(row, own),
      key: keyNameOf({ key_id, key_name }),
      isRefunded: refund !== null,
      isRemoved: own.length > 0 && files !== 'kept',
    }
  })
}

export function createListStore(database: Database) {
  const { get, all } = database
  return {
    async findAccount(
      id: number,
    ): Promise<{ readonly name: string; readonly balance: number; readonly banned: boolean } | undefined> {
      const row = await get('SELECT name, balance, banned FROM accounts WHERE id = :id', { id })
      return row && recordOf(row)
    },
    /** Newest first. */
    async listRuns(filter: RunFilter): Promise<FoundRuns> {
      const { accountId, status, model, key, search, limit } = filter
      // Without a filter, the list reads only the runs that it shows.
      const maxFiltered = isAny(status, model, key) ? MAX_FILTERED : undefined
      const floor = await floorOf(database, 'runs', filter, search === undefined ? maxFiltered : MAX_SEARCHED)
      const { where, values } = whereOf({
        ...inRange('runs', filter, floor),
        'runs.status = ?': status,
        'runs.model = ?': model,
        'runs.key_id = ?': key,
        '{position}(lower(runs.prompt {ascii}), lower(? {ascii})) > 0': search,
      })
      const index = accountId === undefined ? '' : '{index runs_of_account}'
      // Reads one more run to find out whether another page follows.
      const found = await all(
        `SELECT ${LISTED_COLUMNS} FROM runs ${index} ${JOIN_KEY} ${where} ORDER BY runs.sequence DESC LIMIT :rows`,
        { ...values, rows: limit + 1 },
      )
      const { items: runs, next } = pageOf(await runsOf(database, found), limit, floor)
      return { runs, next }
    },
    /** Returns the runs in any order. Omits runs of other accounts. */
    findRuns: async (ids: readonly string[], accountId: number): Promise<readonly ListedRun[]> =>
      runsOf(database, await all(FIND_RUNS, { ids, accountId })),
    /** Newest first. */
    async listAccountKeys({ accountId, before = Number.MAX_SAFE_INTEGER, limit }: AccountPage) {
      const list = `${KEYS} WHERE keys.account_id = :accountId AND keys.id < :before ORDER BY keys.id DESC LIMIT :limit`
      return (await all(list, { accountId, before, limit })).map((row) => keyOf<KeyDetails>(row))
    },
    /** Returns undefined if the account has no key with this id. */
    async findAccountKey(id: number, accountId: number): Promise<KeyDetails | undefined> {
      const row = await get(`${KEYS} WHERE keys.id = :id AND keys.account_id = :accountId`, { id, accountId })
      return row && keyOf(row)
    },
    /** Newest first. */
    async listAccountEntries(filter: EntryFilter): Promise<FoundEntries> {
      const { limit, kind, keyId } = filter
      const count = isAny(kind, keyId) ? MAX_FILTERED : undefined
      const floor = await floorOf(database, 'credits', filter, count)
      const { where, values } = whereOf({
        ...inRange('credits', filter, floor),
        'credits.kind = ?': kind,
        'credits.key_id = ?': keyId,
      })
      const list = `${LIST_ENTRIES} ${where} ORDER BY credits.sequence DESC LIMIT :rows`
      const listed = (await all(list, { ...values, rows: limit + 1 })).map(({ key_name, ...row }) => ({
        ...recordOf<LedgerEntry>(row),
        key: keyNameOf({ key_name, key_id: row.key_id }),
      }))
      const { items: entries, next } = pageOf(listed, limit, floor)
      return { entries, next }
    },
    /** Oldest day first. Omits days without entries. */
    async spendPerDay(accountId: number, fromMs: number): Promise<readonly DaySpend[]> {
      const rows = await all(SPEND_PER_DAY, { accountId, fromMs })
      return rows.map((row) => ({ ...recordOf<DaySpend>(row), day: dayOf(Number(row.day)) }))
    },
  }
}

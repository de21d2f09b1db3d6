/** What the console reads, on PostgreSQL. */
import {
  entryConditions,
  foundRuns,
  maxLookedAt,
  rangeConditions,
  runConditions,
  whereOf,
} from '../console-filters.js'
import { accountSummaryOf, daySpendOf, listedEntryOf, listedRunOf, lostAttemptOf } from '../console-rows.js'
import type { ConsoleStore, RunFilter } from '../console-store.js'
import { keyDetailsOfRow, type Row } from '../shared-rows.js'
import { floorOfRuns, IN_PROMPT, listEntries, listRuns, CONSOLE_SQL as SQL } from './console-statements.js'
import type { PostgresDatabase } from './database.js'
import { hasNul } from './driver.js'
import { summaryOfRow } from './rows.js'

const runOf = (row: Row) => listedRunOf(row, summaryOfRow(row))

export function createConsoleStore({ get, all }: Pick<PostgresDatabase, 'get' | 'all'>): ConsoleStore {
  async function floorOf(filter: RunFilter): Promise<number | undefined> {
    const count = maxLookedAt(filter)
    if (count === undefined) return undefined
    const range = whereOf(rangeConditions(filter), '$')
    const row = await get(floorOfRuns(range.sql, range.next), ...range.values, count)
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
      const floor = await floorOf(filter)
      const prompt = search === undefined ? [] : [{ sql: IN_PROMPT, value: search }]
      const where = whereOf([...runConditions(filter, floor), ...prompt], '$')
      // One more tells whether there is another page.
      const found = await all(listRuns(where.sql, where.next), ...where.values, limit + 1)
      return foundRuns(found.map(runOf), limit, floor)
    },
    findRuns: async (ids, accountId) => {
      const known = ids.filter((id) => !hasNul(id))
      return (await all(SQL.findRuns, known, accountId)).map(runOf)
    },
    latestRun: async (accountId) => Number((await get(SQL.latestRun, accountId))?.latest),
    listLostAttempts: async (runId) => (await all(SQL.listLostAttempts, runId)).map(lostAttemptOf),
    listAccountKeys: async ({ accountId, before = Number.MAX_SAFE_INTEGER, limit }) =>
      (await all(SQL.listAccountKeys, accountId, before, limit)).map(keyDetailsOfRow),
    async findAccountKey(id, accountId) {
      const row = await get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '$')
      return (await all(listEntries(where.sql, where.next), ...where.values, filter.limit)).map(listedEntryOf)
    },
    spendPerDay: async (accountId, fromMs) => (await all(SQL.spendPerDay, accountId, fromMs)).map(daySpendOf),
  }
}

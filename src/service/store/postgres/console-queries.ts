/** What the console reads, on PostgreSQL. */
import { entryConditions, runConditions, whereOf } from '../console-filters.js'
import { accountSummaryOf, daySpendOf, listedEntryOf, listedRunOf, lostAttemptOf } from '../console-rows.js'
import type { ConsoleStore, RunFilter } from '../console-store.js'
import { keyDetailsOfRow, type Row } from '../shared-rows.js'
import { IN_PROMPT, listEntries, listRuns, CONSOLE_SQL as SQL } from './console-statements.js'
import type { PostgresDatabase } from './database.js'
import { hasNul } from './driver.js'
import { runOfRow } from './rows.js'

const runOf = (row: Row) => listedRunOf(row, runOfRow(row))

export function createConsoleStore({ get, all, snapshot }: PostgresDatabase): ConsoleStore {
  async function selectRuns(filter: RunFilter): Promise<readonly Row[]> {
    const { model = '', search, limit } = filter
    if (hasNul(model, search ?? '')) return []
    const prompt = search === undefined ? [] : [{ sql: IN_PROMPT, value: search }]
    const where = whereOf([...runConditions(filter), ...prompt], '$')
    return await all(listRuns(where.sql, where.next), ...where.values, limit)
  }

  return {
    async findAccount(id) {
      const row = await get(SQL.findAccountById, id)
      return row && accountSummaryOf(row)
    },
    listRuns: async (filter) => (await selectRuns(filter)).map(runOf),
    findRuns: async (ids, accountId) => {
      const known = ids.filter((id) => !hasNul(id))
      return (await all(SQL.findRuns, known, accountId)).map(runOf)
    },
    latestRun: async (accountId) => Number((await get(SQL.latestRun, accountId))?.latest),
    listLostAttempts: async (runId) => (await all(SQL.listLostAttempts, runId)).map(lostAttemptOf),
    listAccountKeys: async (accountId) => (await all(SQL.listAccountKeys, accountId)).map(keyDetailsOfRow),
    async findAccountKey(id, accountId) {
      const row = await get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '$')
      const statement = listEntries(where.sql, where.next)
      const values = [...where.values, filter.limit]
      // All entries may take longer than a statement may.
      const rows =
        filter.limit < 0
          ? await snapshot((read) => read.all(statement, ...values))
          : await all(statement, ...values)
      return rows.map(listedEntryOf)
    },
    spendPerDay: async (accountId, fromMs) => (await all(SQL.spendPerDay, accountId, fromMs)).map(daySpendOf),
  }
}

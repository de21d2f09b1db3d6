/** What the console reads, on SQLite. */
import type { OpenDatabase, Row } from '../../../host/database.js'
import { entryConditions, runConditions, whereOf } from '../console-filters.js'
import {
  accountSummaryOf,
  DAY_MS,
  daySpendOf,
  listedEntryOf,
  listedRunOf,
  lostAttemptOf,
} from '../console-rows.js'
import type { ConsoleStore, DaySpend } from '../console-store.js'
import { keyDetailsOfRow } from '../shared-rows.js'
import { IN_PROMPT, listEntries, listRuns, CONSOLE_SQL as SQL } from './console-statements.js'
import { runOfRow } from './rows.js'
import { SQL as RUN_SQL } from './run-statements.js'

export function createConsoleStore({ get, all }: Pick<OpenDatabase, 'get' | 'all'>): ConsoleStore {
  const runOf = (row: Row) =>
    listedRunOf(
      row,
      runOfRow(row, row.status === 'succeeded' ? all(RUN_SQL.outputsOfRun, String(row.id)) : []),
    )

  return {
    async findAccount(id) {
      const row = get(SQL.findAccount, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const search = filter.search === undefined ? [] : [{ sql: IN_PROMPT, value: filter.search }]
      const where = whereOf([...runConditions(filter), ...search], '?')
      return all(listRuns(where.sql, where.next), ...where.values, filter.limit).map(runOf)
    },
    findRuns: async (ids, accountId) => all(SQL.findRuns, JSON.stringify(ids), accountId).map(runOf),
    latestRun: async (accountId) => Number(get(SQL.latestRun, accountId)?.latest),
    listLostAttempts: async (runId) => all(SQL.listLostAttempts, runId).map(lostAttemptOf),
    listAccountKeys: async (accountId) => all(SQL.listAccountKeys, accountId).map(keyDetailsOfRow),
    async findAccountKey(id, accountId) {
      const row = get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '?')
      return all(listEntries(where.sql, where.next), ...where.values, filter.limit).map(listedEntryOf)
    },
    async spendPerDay(accountId, fromMs) {
      const days: DaySpend[] = []
      // A range of the index for each day. GROUP BY would sort all entries.
      for (let at = nextSpend(fromMs); at !== undefined; ) {
        const endMs = (Math.floor(at / DAY_MS) + 1) * DAY_MS
        const row = get(SQL.spendBetween, accountId, at, endMs)
        if (row !== undefined) days.push(daySpendOf(row))
        at = nextSpend(endMs)
      }
      return days

      function nextSpend(ms: number): number | undefined {
        const row = get(SQL.nextSpend, accountId, ms)
        return row && Number(row.created_at)
      }
    },
  }
}

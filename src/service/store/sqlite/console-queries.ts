/** What the console reads, on SQLite. */
import type { OpenDatabase, Row } from '../../../host/database.js'
import {
  entryConditions,
  foundRuns,
  maxLookedAt,
  rangeConditions,
  runConditions,
  whereOf,
} from '../console-filters.js'
import {
  accountSummaryOf,
  DAY_MS,
  daySpendOf,
  listedEntryOf,
  listedRunOf,
  lostAttemptOf,
} from '../console-rows.js'
import type { ConsoleStore, DaySpend, ListedRun, RunFilter } from '../console-store.js'
import { keyDetailsOfRow } from '../shared-rows.js'
import { floorOfRuns, IN_PROMPT, listEntries, listRuns, CONSOLE_SQL as SQL } from './console-statements.js'
import { summaryOfRow } from './rows.js'

export function createConsoleStore({ get, all }: Pick<OpenDatabase, 'get' | 'all'>): ConsoleStore {
  function runsOf(rows: readonly Row[]): readonly ListedRun[] {
    const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ id }) => String(id))
    const outputs = all(SQL.outputsOfRuns, JSON.stringify(succeeded))
    return rows.map((row) =>
      listedRunOf(
        row,
        summaryOfRow(
          row,
          outputs.filter(({ run_id }) => run_id === row.id),
        ),
      ),
    )
  }

  function floorOf(filter: RunFilter): number | undefined {
    const count = maxLookedAt(filter)
    if (count === undefined) return undefined
    const range = whereOf(rangeConditions(filter), '?')
    const row = get(floorOfRuns(range.sql, range.next), ...range.values, count)
    return row && Number(row.sequence)
  }

  return {
    async findAccount(id) {
      const row = get(SQL.findAccount, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const { search, limit } = filter
      const floor = floorOf(filter)
      const prompt = search === undefined ? [] : [{ sql: IN_PROMPT, value: search }]
      const where = whereOf([...runConditions(filter, floor), ...prompt], '?')
      // One more tells whether there is another page.
      const found = all(listRuns(where.sql, where.next), ...where.values, limit + 1)
      return foundRuns(runsOf(found), limit, floor)
    },
    findRuns: async (ids, accountId) => runsOf(all(SQL.findRuns, JSON.stringify(ids), accountId)),
    latestRun: async (accountId) => Number(get(SQL.latestRun, accountId)?.latest),
    listLostAttempts: async (runId) => all(SQL.listLostAttempts, runId).map(lostAttemptOf),
    listAccountKeys: async ({ accountId, before = Number.MAX_SAFE_INTEGER, limit }) =>
      all(SQL.listAccountKeys, accountId, before, limit).map(keyDetailsOfRow),
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

/** The ledger of an account: pages of entries, credits per day, and the CSV. Without HTTP. */
import type { Clock } from '../../host/clock.js'
import type { BalanceEntry, EntriesPage, Spend } from '../../protocol/console.js'
import { choiceIn, cursorIn, numberIn, type Query, textIn } from '../rules/console-requests.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { DAY_MS, dayOf, isoOrNull, parseDay, startOfDay } from '../rules/times.js'
import type { EntryFilter, ListedEntry } from '../store/console-store.js'
import type { ReadTurns } from './limits.js'

const KINDS = ['added', 'charge', 'refund'] as const
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 100
const DEFAULT_DAYS = 30
const MAX_DAYS = 366
/** Maximum number of CSV entries in memory at the same time. */
const CSV_PAGE = 1_000

/** Queries are unchecked values of requests. All functions throw `Refusal`: 400. */
export interface Credits {
  entries(accountId: number, query: Query): Promise<EntriesPage>
  /**
   * Returns all entries in parts, newest first. Wait for the first part before the response begins, since it can throw.
   */
  csv(accountId: number, query: Query): AsyncGenerator<string>
  spend(accountId: number, query: Query): Promise<Spend>
}

interface CreditsOptions {
  readonly store: ReadTurns
  readonly clock: Clock
}

export function createCredits({ store, clock }: CreditsOptions): Credits {
  return {
    async entries(accountId, query) {
      const limit = numberIn(query, 'limit', 1, MAX_LIMIT) ?? DEFAULT_LIMIT
      const filter = filterOf(accountId, query)
      const [found, account] = await Promise.all([
        store.listAccountEntries({ ...filter, before: cursorIn(query, 'before'), limit }),
        store.findAccount(accountId),
      ])
      if (account === undefined) throw new Refusal('not_found')
      return {
        entries: found.entries.map(entryBody),
        next: found.next === undefined ? null : String(found.next),
        balance: account.balance,
      }
    },

    async *csv(accountId, query) {
      const filter = filterOf(accountId, query)
      let before: number | undefined
      let head = csvLine(['time', 'kind', 'amount', 'run', 'key number', 'key name'])
      for (;;) {
        const list = before === undefined ? store.listAccountEntries : store.listMoreEntries
        const { entries, next } = await list({ ...filter, before, limit: CSV_PAGE })
        yield head + entries.map(lineOf).join('')
        if (next === undefined) return
        before = next
        head = ''
      }
    },

    async spend(accountId, query) {
      const count = numberIn(query, 'days', 1, MAX_DAYS) ?? DEFAULT_DAYS
      const fromMs = startOfDay(clock.now()) - (count - 1) * DAY_MS
      const spent = new Map((await store.spendPerDay(accountId, fromMs)).map((each) => [each.day, each]))
      const days = Array.from({ length: count }, (_, at) => dayOf(fromMs + at * DAY_MS))
      return { days: days.map((day) => spent.get(day) ?? { day, credits: 0, runs: 0 }) }
    },
  }
}

function filterOf(accountId: number, query: Query): Omit<EntryFilter, 'limit' | 'before'> {
  const untilDay = dayIn(query, 'to')
  return {
    accountId,
    kind: choiceIn(query, 'kind', KINDS),
    keyId: numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER),
    fromMs: dayIn(query, 'from'),
    untilMs: untilDay === undefined ? undefined : untilDay + DAY_MS,
  }
}

function dayIn(query: Query, name: string): number | undefined {
  const text = textIn(query, name)
  if (text === undefined) return undefined
  const ms = parseDay(text)
  if (ms === undefined) throw invalidInput(`${name}: "${text}" is not a day, such as 2026-01-31.`)
  return ms
}

const entryBody = ({ sequence, kind, amount, runId, key, createdAtMs }: ListedEntry): BalanceEntry => ({
  sequence,
  kind,
  amount,
  run_id: runId ?? null,
  key: key ?? null,
  created_at: new Date(createdAtMs).toISOString(),
})

const lineOf = ({ createdAtMs, kind, amount, runId, key }: ListedEntry): string =>
  csvLine([isoOrNull(createdAtMs), kind, amount, runId, key?.id, key?.name])

type Cell = string | number | null | undefined

const NUMBER = /^-?\d+(\.\d+)?$/

/**
 * Start of a cell that a spreadsheet would read as a formula; a name can start like this. An apostrophe makes it text.
 * Where commas are decimal points, a semicolon separates cells. Japanese versions treat full-width signs like the
 * others.
 */
const FORMULA = /(^|[;\r\n])(?=[=+\-@＝＋－＠\t\r])/g

function cellText(cell: Cell): string {
  const text = String(cell ?? '')
  const harmless = NUMBER.test(text) ? text : text.replace(FORMULA, "$1'")
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** One CSV line (RFC 4180). */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`

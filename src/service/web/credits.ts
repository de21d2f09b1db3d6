/** The page of the credits: the balance, what was spent per day, and the ledger, also as CSV. */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { CreditsPage } from '../../console/credits-page.js'
import { DAY_MS, dayOf, isoOrNull, startOfDay } from '../../protocol/units.js'
import { choiceIn, cursorIn, numberIn, type Query } from '../rules/console-requests.js'
import type { Store } from '../store/index.js'
import type { DaySpend, EntryFilter, ListedEntry } from '../store/lists.js'
import { keyChoices } from './runs.js'
import type { Site } from './site.js'

const KINDS = ['added', 'charge', 'refund'] as const
/** Number of days in the chart. */
const DAYS = 30
const PAGE_SIZE = 100
/** Maximum number of CSV entries in memory at the same time. */
const CSV_PAGE = 1_000

interface Asked {
  Querystring: Query
}

export function addCreditsRoutes(app: FastifyInstance, site: Site): void {
  const { store, clock } = site.options

  app.get<Asked>('/credits', async (request, reply) => {
    const { query } = request
    const accountId = site.account(request)
    const filter = filterOf(accountId, query)
    const [account, { entries, next }, spent, keys] = await Promise.all([
      store.findAccount(accountId),
      store.listAccountEntries({ ...filter, before: cursorIn(query, 'before'), limit: PAGE_SIZE }),
      spentPerDay(store, accountId, clock.now()),
      keyChoices(site, accountId),
    ])
    return site.page(reply, CreditsPage, {
      balance: account?.balance ?? 0,
      account: site.session(request).user.account,
      query: {
        kind: filter.kind,
        key: filter.keyId === undefined ? undefined : String(filter.keyId),
      },
      entries,
      next,
      days: spent,
      keys,
    })
  })

  app.get<Asked>('/credits.csv', async (request, reply) => {
    const filter = filterOf(site.account(request), request.query)
    reply.header('content-disposition', 'attachment; filename="credits.csv"').type('text/csv; charset=utf-8')
    return reply.send(Readable.from(csvOf(store, filter), { objectMode: false }))
  })
}

/** All days, oldest first, also those without charges. */
async function spentPerDay(store: Store, accountId: number, nowMs: number): Promise<readonly DaySpend[]> {
  const fromMs = startOfDay(nowMs) - (DAYS - 1) * DAY_MS
  const spent = new Map((await store.spendPerDay(accountId, fromMs)).map((each) => [each.day, each]))
  const days = Array.from({ length: DAYS }, (_, at) => dayOf(fromMs + at * DAY_MS))
  return days.map((day) => spent.get(day) ?? { day, credits: 0, runs: 0 })
}

function filterOf(accountId: number, query: Query): Omit<EntryFilter, 'limit' | 'before'> {
  return {
    accountId,
    kind: choiceIn(query, 'kind', KINDS),
    keyId: numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER),
  }
}

/** All entries, newest first, in parts. */
async function* csvOf(store: Store, filter: Omit<EntryFilter, 'limit' | 'before'>): AsyncGenerator<string> {
  let before: number | undefined
  let head = csvLine(['time', 'kind', 'amount', 'run', 'key number', 'key name'])
  for (;;) {
    const { entries, next } = await store.listAccountEntries({ ...filter, before, limit: CSV_PAGE })
    yield head + entries.map(lineOf).join('')
    if (next === undefined) return
    before = next
    head = ''
  }
}

const lineOf = ({ createdAtMs, kind, amount, runId, key }: ListedEntry): string =>
  csvLine([isoOrNull(createdAtMs), kind, amount, runId, key?.id, key?.name])

type Cell = string | number | null | undefined

/** Start of a cell that a spreadsheet would read as a formula; the name of a key can start like this. */
const FORMULA = /^[=+\-@\t\r]/

function cellText(cell: Cell): string {
  const text = String(cell ?? '')
  // An apostrophe makes it text.
  const harmless = typeof cell === 'string' && FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** One CSV line (RFC 4180). */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`

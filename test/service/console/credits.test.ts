import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  BOAT,
  createByKey,
  createConsoleService,
  createInConsole,
  signInByLink,
} from '../../support/console.js'
import { openStoreOf } from '../../support/test-database.js'

describe('credits', () => {
  test('the ledger has pages, filters and a CSV of everything', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const { key, api_key } = (await browser.post(CONSOLE_PATHS.keys, { name: '=SUM(A1), "x"' })).body
    await createByKey(service, 3)
    await service.clock.advance(24 * 3_600_000)
    const [last] = await createByKey(service, 1, api_key)
    const page = async (query: string) => (await browser.get(`${CONSOLE_PATHS.credits}?${query}`)).body
    const first = await page('limit=2')
    expect(first).toMatchObject({
      balance: 9_996,
      entries: [
        { kind: 'charge', amount: -1, run_id: last, key: { id: key.id, name: '=SUM(A1), "x"' } },
        { amount: -1 },
      ],
    })
    const second = await page(`limit=3&before=${first.next}`)
    expect([second.entries.length, second.next, second.entries.at(-1).kind]).toEqual([3, null, 'added'])
    const counts = async (query: string) => (await page(query)).entries.length
    expect(await counts('kind=charge')).toBe(4)
    expect(await counts('kind=refund')).toBe(0)
    expect(await counts(`key=${key.id}`)).toBe(1)
    expect(await counts('from=2026-01-01&to=2026-01-01')).toBe(4)
    expect(await counts('from=2026-01-02')).toBe(1)
    expect(await counts('to=2025-12-31')).toBe(0)

    const csv = await browser.get(`${CONSOLE_PATHS.csv}?kind=charge`)
    expect([
      csv.status,
      csv.header('content-type'),
      csv.header('content-disposition'),
      csv.header('cache-control'),
    ]).toEqual([200, 'text/csv; charset=utf-8', 'attachment; filename="credits.csv"', 'no-store'])
    const rows = parse(csv.body) as string[][]
    expect(rows[0]).toEqual(['time', 'kind', 'amount', 'run', 'key number', 'key name'])
    expect(rows[1]).toEqual([
      '2026-01-02T00:00:02.000Z',
      'charge',
      '-1',
      last,
      String(key.id),
      `'=SUM(A1), "x"`,
    ])
    expect(rows).toHaveLength(5)
    expect(csv.body).toContain('\r\n')
  })

  test('a CSV of more entries than are in memory at once has each of them once', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'rich@example.com', 'rich')
    const store = await openStoreOf(service)
    for (let at = 0; at < 2_500; at++)
      await store.addCredits({ account: 'rich', amount: 1, nowMs: service.clock.now() + at }, () => {})
    await store.close()
    const rows = parse((await browser.get(CONSOLE_PATHS.csv)).body) as string[][]
    expect([rows.length, new Set(rows.map(([time]) => time)).size]).toEqual([2_502, 2_501])
  })

  test('the spend of each day, days without any included', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    await createInConsole(browser, BOAT)
    await service.clock.advance(2 * 24 * 3_600_000)
    await createByKey(service, 2)
    const spend = async (query: string) => (await browser.get(`${CONSOLE_PATHS.spend}${query}`)).body.days
    expect(await spend('?days=4')).toEqual([
      { day: '2025-12-31', credits: 0, runs: 0 },
      { day: '2026-01-01', credits: 10, runs: 1 },
      { day: '2026-01-02', credits: 0, runs: 0 },
      { day: '2026-01-03', credits: 2, runs: 2 },
    ])
    expect((await spend('')).length).toBe(30)
    expect(await spend('?days=1')).toEqual([{ day: '2026-01-03', credits: 2, runs: 2 }])
  })
})

import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CONSOLE_PATHS, type EntriesPage } from '../../../src/protocol/console.js'
import { csvLine } from '../../../src/service/console/credits.js'
import { anyCharacter } from '../../support/any-character.js'
import {
  BOAT,
  createByKey,
  createConsoleService,
  createInConsole,
  signInByLink,
} from '../../support/console.js'
import { runSql } from '../../support/test-database.js'

describe('credits', () => {
  test('the ledger can be paged, filtered and exported as CSV', async () => {
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
    for (const [query, count] of [
      ['kind=charge', 4],
      ['kind=refund', 0],
      [`key=${key.id}`, 1],
      ['from=2026-01-01&to=2026-01-01', 4],
      ['from=2026-01-02', 1],
      ['to=2025-12-31', 0],
    ] as const)
      expect([query, (await page(query)).entries.length]).toEqual([query, count])

    const csv = await browser.get(`${CONSOLE_PATHS.csv}?kind=charge`)
    const headers = ['content-type', 'content-disposition', 'cache-control'].map((name) => csv.header(name))
    expect([csv.status, ...headers]).toEqual([
      200,
      'text/csv; charset=utf-8',
      'attachment; filename="credits.csv"',
      'no-store',
    ])
    const rows = parse(csv.body) as string[][]
    expect(rows.slice(0, 2)).toEqual([
      ['time', 'kind', 'amount', 'run', 'key number', 'key name'],
      ['2026-01-02T00:00:02.000Z', 'charge', '-1', last, String(key.id), `'=SUM(A1), "x"`],
    ])
    expect(rows).toHaveLength(5)
    expect(csv.body).toContain('\r\n')
  })

  test('a CSV of more entries than are in memory at once contains each entry once', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'rich@example.com', 'rich')
    await runSql(
      service,
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
       INSERT INTO credits (account_id, kind, amount, created_at)
       SELECT accounts.id, 'added', 1, n FROM numbers, accounts WHERE accounts.name = 'rich' ORDER BY n`,
    )
    const rows = parse((await browser.get(CONSOLE_PATHS.csv)).body) as string[][]
    expect([rows.length, new Set(rows.map(([time]) => time)).size]).toEqual([2_502, 2_502])
  })

  test('a filtered page reads 50,000 entries and returns where to continue; the CSV reads all', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'rich@example.com', 'rich')
    const add = (kind: string, count: number) =>
      runSql(
        service,
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
         INSERT INTO credits (account_id, kind, amount, run_id, created_at)
         SELECT accounts.id, '${kind}', 1, ${kind === 'added' ? 'NULL' : `'run_old'`}, n
         FROM numbers, accounts WHERE accounts.name = 'rich' ORDER BY n`,
      )
    await runSql(
      service,
      `INSERT INTO runs (id, account_id, model, kind, price, status, turn, created_at, input)
       SELECT 'run_old', id, 'acme/model', 'image', 1, 'failed', 0, 1, '{}' FROM accounts WHERE name = 'rich'`,
    )
    await add('refund', 1)
    await add('added', 50_001)
    const page = async (query: string) => (await browser.get(`${CONSOLE_PATHS.credits}?${query}`)).body
    for (const query of ['kind=refund', 'to=1969-12-31', 'key=99']) {
      let found: EntriesPage = await page(query)
      const counts = [found.entries.length]
      while (found.next !== null) {
        expect(counts.length).toBeLessThan(3)
        found = await page(`${query}&before=${found.next}`)
        counts.push(found.entries.length)
      }
      expect([query, counts]).toEqual([query, query === 'kind=refund' ? [0, 1] : [0, 0]])
    }
    expect((await page('limit=100')).entries).toHaveLength(100)
    const rows = parse((await browser.get(`${CONSOLE_PATHS.csv}?kind=refund`)).body) as string[][]
    expect(rows.map(([, kind]) => kind)).toEqual(['kind', 'refund'])
  })

  test('the spend lists each day, including days without any', async () => {
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

const SIGNS = [...';=+-@＝＋－＠\t\r\n\'",']
const NUMBER = /^-?\d+(\.\d+)?$/

test.each<[cell: string | number | null | undefined, text: string]>([
  ['plain', 'plain'],
  ['', ''],
  [null, ''],
  [undefined, ''],
  [7, '7'],
  [-7, '-7'],
  ['-7.5', '-7.5'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['two\nlines', '"two\nlines"'],
  ['=1+1', "'=1+1"],
  ['+49', "'+49"],
  ['-x', "'-x"],
  ['--7', "'--7"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', '"\'\r=1"'],
  ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
  ['a=b', 'a=b'],
  ['\ta', "'\ta"],
  ['\ra', '"\'\ra"'],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  ['a＝b', 'a＝b'],
  // The apostrophe is where the cell begins for a spreadsheet that takes the semicolon for a separator.
  [';=1+1', ";'=1+1"],
  ['a;=1+1;b;@x', "a;'=1+1;b;'@x"],
  [';;＝1', ";;'＝1"],
  ['a; b', 'a; b'],
  ['a\n=1', '"a\n\'=1"'],
])('%j', (cell, text) => expect(csvLine([cell])).toBe(`${text}\r\n`))

test('any cells survive a CSV round trip, and none starts a formula in a spreadsheet', () => {
  const cell = fc.string({ unit: fc.oneof(anyCharacter, fc.constantFrom(...SIGNS)), maxLength: 8 })
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 5 }), (cells) => {
      const [read] = parse(csvLine(['x', ...cells])) as string[][]
      const [, ...texts] = read ?? []
      const plain = (each: string) => each.replaceAll("'", '')
      expect(texts.map(plain)).toEqual(cells.map(plain))
      for (const each of texts.flatMap((text) => (NUMBER.test(text) ? [] : text.split(';'))))
        expect(each).toMatch(/^([^=+\-@＝＋－＠\t\r]|$)/)
    }),
  )
})

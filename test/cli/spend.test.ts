/** `rushes spend`: sums of estimates, and the same amounts as the ledger of the service. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { RunState } from '../../src/protocol/run-state.js'
import { ENGINE_TYPES } from '../../src/service/models/engine-table.js'
import { readModels } from '../../src/service/models/read-models.js'
import type { ServedModel } from '../../src/service/models/served-model.js'
import {
  createCliService,
  createFamilyEngine,
  createHome,
  finishedState,
  type Home,
  LOOPBACK_URL,
  lines,
  objects,
  outputOf,
  temporaryFolder,
  usageErrorOf,
  withJournal,
} from '../support/index.js'
import type { PastRun } from '../support/journal.js'
import { runSql } from '../support/test-database.js'

const UP = { urls: [] }
const FAILED = { state: { status: 'failed', phase: 'failed' } } as const

/** Rows whose estimates are amounts with a currency, such as `0.4 USD`. The id of each is its place. */
const rowsWith = (rows: readonly (PastRun & { readonly costs?: string })[]): readonly PastRun[] =>
  rows.map(({ costs, ...row }, at) => {
    const [amount = '', currency = ''] = costs?.split(' ') ?? []
    const estimate =
      costs === undefined ? undefined : { millionths: Math.round(Number(amount) * 1e6), currency }
    return { id: `run_${at}`, ...row, estimate }
  })

const MIXED = rowsWith([
  { ...UP, costs: '0.1 USD', labels: ['spring'] },
  { ...UP, costs: '0.2 USD', labels: ['spring', '春'] },
  { ...FAILED, costs: '0.3 USD', labels: ['春'] },
  { costs: '0.000001 USD' },
  { id: undefined, costs: '1.4 USD', model: 'acme/cinema-1' },
  { ...UP, costs: '12 credits', model: 'acme/cinema-1' },
  { ...UP, model: 'acme/other-1' },
  { ...UP, model: 'acme/still-1' },
])

describe('spend', () => {
  let home: Home
  beforeAll(() => {
    home = createHome({ journal: MIXED })
  })
  const spend = async (flags = '') => {
    const { code, stdout, stderr } = await home.run(`spend ${flags}`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  it('prints one line for each group and currency in a pipe', async () => {
    expect(lines(await spend())).toEqual([
      'model\tacme/cinema-1\t1\t0\tUSD\t0\t0\t0\t1.4',
      'model\tacme/cinema-1\t1\t0\tcredits\t12\t0\t0\t0',
      'model\tacme/other-1\t1\t1\t\t\t\t\t',
      'model\tacme/still-1\t5\t1\tUSD\t0.3\t0.3\t0.000001\t0',
      'total\t\t7\t2\tUSD\t0.3\t0.3\t0.000001\t1.4',
      'total\t\t1\t0\tcredits\t12\t0\t0\t0',
    ])
  })

  it('counts a run of unknown outcome as unconfirmed, since it may cost money, and as succeeded once it was adopted', async () => {
    const uncertain = createHome({ journal: rowsWith([{ costs: '1.5 USD' }]) })
    const sums = async (state: Partial<RunState>) => {
      withJournal(uncertain.home, (journal) =>
        journal.status(LOOPBACK_URL, { state: { ...finishedState('run_0', []), ...state } }),
      )
      return lines(outputOf(await uncertain.run('spend'))).at(-1)
    }
    const service = { error: { code: 'outcome_unknown', message: 'lost' } }
    const lost = await sums({ status: 'failed', phase: 'failed', failure: 'lost', service })
    expect(lost).toBe('total\t\t1\t0\tUSD\t0\t0\t0\t1.5')
    expect(await sums({ urls: ['https://cdn.test/1'] })).toBe('total\t\t1\t0\tUSD\t1.5\t0\t0\t0')
  })

  it('counts a run with two labels in both groups, and once in the total', async () => {
    const labels = lines(await spend('--by label'))
    expect(labels.map((line) => line.split('\t').slice(0, 6))).toEqual([
      ['label', 'spring', '2', '0', 'USD', '0.3'],
      ['label', '春', '2', '0', 'USD', '0.2'],
      ['label', '', '4', '2', 'USD', '0'],
      ['label', '', '1', '0', 'credits', '12'],
      ['total', '', '7', '2', 'USD', '0.3'],
      ['total', '', '1', '0', 'credits', '12'],
    ])
    expect(lines(await spend('--label 春 --label spring'))).toEqual([
      'model\tacme/still-1\t1\t0\tUSD\t0.2\t0\t0\t0',
      'total\t\t1\t0\tUSD\t0.2\t0\t0\t0',
    ])
  })

  it('counts runs without a price with the currency that most others have', async () => {
    const rows = [{ costs: '1 credits' }, { costs: '2 credits' }, { costs: '0.1 USD' }, {}]
    const { run } = createHome({ journal: rowsWith(rows.map((row) => ({ ...UP, ...row }))) })
    expect(lines(outputOf(await run('spend'))).filter((line) => line.startsWith('total'))).toEqual([
      'total\t\t3\t1\tcredits\t3\t0\t0\t0',
      'total\t\t1\t0\tUSD\t0.1\t0\t0\t0',
    ])
  })

  it('prints a table of the same columns on a terminal, and says that they are estimates', async () => {
    const on = async (flags = '') => {
      const { stdout, stderr } = await home.run(`spend ${flags}`, { tty: { stdout: true } })
      return `${stdout}${stderr}`
    }
    expect(await on()).toMatchInlineSnapshot(`
      "BY     NAME           RUNS  NO PRICE  CURRENCY  SUCCEEDED  FAILED  UNFINISHED  UNCONFIRMED
      model  acme/cinema-1  1     0         USD       0          0       0           1.4
      model  acme/cinema-1  1     0         credits   12         0       0           0
      model  acme/other-1   1     1
      model  acme/still-1   5     1         USD       0.3        0.3     0.000001    0
      total                 7     2         USD       0.3        0.3     0.000001    1.4
      total                 1     0         credits   12         0       0           0
      These are estimates. Runs that failed or were canceled may have been refunded.
      "
    `)
    expect(await on('--by label --label spring')).toMatchInlineSnapshot(`
      "BY     NAME    RUNS  NO PRICE  CURRENCY  SUCCEEDED  FAILED  UNFINISHED  UNCONFIRMED
      label  spring  2     0         USD       0.3        0       0           0
      label  春      1     0         USD       0.2        0       0           0
      total          2     0         USD       0.3        0       0           0
      These are estimates. Runs that failed or were canceled may have been refunded.
      "
    `)
    expect(await on('--label nothing')).toBe('No runs found.\n')
  })

  it('prints an object for each group and currency, then the total', async () => {
    const [cinema, , other, , total] = objects(await spend('--json'))
    const none = { succeeded: 0, failed: 0, unfinished: 0 }
    expect(cinema).toEqual({
      ...{ group: 'model', name: 'acme/cinema-1', runs: 1, without_price: 0, currency: 'USD', estimate: 1.4 },
      ...{ ...none, unconfirmed: 1.4 },
    })
    const unknown = { succeeded: null, failed: null, unfinished: null, unconfirmed: null }
    expect(other).toEqual({
      ...{ group: 'model', name: 'acme/other-1', runs: 1, without_price: 1, currency: null, estimate: null },
      ...unknown,
    })
    expect(total).toMatchObject({ group: 'total', name: null, runs: 7, without_price: 2, estimate: 2.000001 })
    expect(objects(await spend('--json --label nothing'))).toEqual([
      {
        ...{ group: 'total', name: null, runs: 0, without_price: 0, currency: null, estimate: null },
        ...unknown,
      },
    ])
  })

  it('does not take another grouping', async () => {
    usageErrorOf(await home.run('spend --by week'))
  })
})

it('spend selects runs by time and by service', async () => {
  const journal = rowsWith([
    { ...UP, at: '2025-12-29T00:00Z', costs: '1 USD' },
    { ...UP, costs: '2 USD' },
    { ...UP, costs: '4 USD', address: 'https://b.example' },
    { ...UP, costs: '0 credits', address: 'local' },
  ])
  const { run } = createHome({ journal })
  const total = async (flags = '') => {
    const { stdout } = await run(`spend ${flags}`)
    return lines(stdout).flatMap((line) =>
      line.startsWith('total') ? [line.split('\t').slice(4, 6).join(' ')] : [],
    )
  }
  expect(await total()).toEqual(['USD 7', 'credits 0'])
  expect(await total('--since 2d')).toEqual(['USD 6', 'credits 0'])
  expect(await total(`--base-url ${LOOPBACK_URL}`)).toEqual(['USD 3'])
  expect(await total('--base-url https://b.example')).toEqual(['USD 4'])
  expect(await total('--local')).toEqual(['credits 0'])
})

it.each([
  ['America/Los_Angeles', ['2025-12-31', '2026-03-28', '2026-03-29']],
  // In the night to 29 March, one o'clock follows directly on 23:59.
  ['Asia/Beirut', ['2026-01-01', '2026-03-28', '2026-03-29', '2026-03-30']],
])('spend --by day has the days of the time zone %s', async (zone, days) => {
  vi.stubEnv('TZ', zone)
  const times = ['2026-01-01T01:00Z', '2026-03-28T21:59Z', '2026-03-28T22:00Z', '2026-03-29T21:00Z']
  const { run } = createHome({ journal: rowsWith(times.map((at) => ({ at, costs: '1 USD' }))) })
  const groups = lines(outputOf(await run('spend --by day')))
  expect(groups.slice(0, -1).map((line) => line.split('\t')[1])).toEqual(days)
})

const STILL = {
  ...{ name: 'acme/still-1', kind: 'image', engine: { type: 'preview' } },
  input: {
    quality: { type: 'string', enum: ['basic', 'high'], default: 'basic' },
    steps: { type: 'integer', minimum: 1, maximum: 50 },
  },
  price: { run: 0.4, factors: { quality: { basic: 2.5, high: 7.5 }, steps: { 50: 3 } } },
}
const FILM = {
  ...{ name: 'acme/cinema-1', kind: 'video', engine: { type: 'preview' } },
  price: { run: 10, factors: { duration: { 5: 0.5, 10: 1.5 }, resolution: { '1080p': 1.2 } } },
}

/** Reads the documents like `rushes serve --models`. */
function served(...documents: readonly object[]): readonly ServedModel[] {
  const path = join(temporaryFolder(), 'models.json')
  writeFileSync(path, JSON.stringify(documents))
  return readModels({ path, env: {}, types: ENGINE_TYPES }).map((model) => ({ ...model, concurrency: 8 }))
}

/** Runs that each have another price. */
const PRICED = [
  'image fox',
  'image fox --quality high',
  'video fox --duration 5 --resolution 1080p',
  'image fox --quality high --steps 50',
  'video fox --duration 10 --resolution 1080p',
]
it('spend has the same amounts as the ledger of the service', async () => {
  const service = await createCliService({
    ...{ models: served(STILL, FILM), engine: createFamilyEngine(), hasList: true },
  })
  const env = { RUSHES_IMAGE_MODEL: STILL.name, RUSHES_VIDEO_MODEL: FILM.name }
  const run = (line: string) => service.run(line, { env })
  await run('models')
  for (const words of PRICED) outputOf(await run(`run ${words}`))
  expect((await run('run image FAIL')).code).toBe(10)
  const ledger = await runSql(service, 'SELECT kind, amount FROM credits')
  const sumOf = (kind: string): number =>
    ledger.reduce((sum, each) => sum + (each.kind === kind ? Number(each.amount) : 0), 0)
  const failed = sumOf('refund')
  expect(failed).toBeGreaterThan(0)
  expect(objects(outputOf(await run('spend --json'))).at(-1)).toMatchObject({
    ...{ runs: PRICED.length + 1, without_price: 0, currency: 'credits' },
    ...{ succeeded: -sumOf('charge') - failed, failed, unfinished: 0, unconfirmed: 0 },
  })
})

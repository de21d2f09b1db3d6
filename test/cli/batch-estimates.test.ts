/** `rushes batch`: estimates of its plan and of what it has created, `--max-cost`, and the labels of its rows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFamily, FAMILY, type Row } from '../support/family.js'
import { lines, objects, outputOf, usageErrorOf } from '../support/index.js'

const IMAGE = 'rushes/preview-image'
const VIDEO = 'rushes/preview-video'
const PRICES = {
  [IMAGE]: { run: 0.1, factors: { quality: { high: 2 } } },
  [VIDEO]: { run: 1.5, factors: { duration: { '10': 2 } } },
}
const FOX = { name: 'fox', prompt: 'a fox' }
const HEN = { name: 'hen', prompt: 'a hen', quality: 'high' }
const FILM = { name: 'film', kind: 'video', prompt: 'a film', duration: '10' }
const OTHER = { name: 'other', model: 'acme/other', prompt: 'x' }

const createBatch = (rows: readonly Row[], prices: object = PRICES) =>
  createFamily(rows, { config: { currency: 'USD', prices } })

const last = (text: string) => lines(text).at(-1)

it('the estimate of a plan is the sum of the rows to create, in JSON also by model', async () => {
  const { run, created } = await createBatch([FOX, HEN, FILM, OTHER])
  const { code, stderr } = await run('--dry-run')
  expect({ code, created: created() }).toEqual({ code: 0, created: [] })
  expect(lines(stderr)).toEqual(['4 runs: 4 to create. Estimate: 3.3 USD (1 run without a price)'])
  expect(objects((await run('--check --json')).stdout).at(-1).summary).toMatchObject({
    estimate: 3.3,
    currency: 'USD',
    without_price: 1,
    estimates: { [IMAGE]: 0.3, [VIDEO]: 3, 'acme/other': null },
  })
})

it('the estimate of a batch is the sum of the runs that it has created, and the journal has that of each', async () => {
  const { run, write, service, folder } = await createBatch([FOX, HEN])
  await run('--only fox')
  write([FOX, HEN, FILM])
  const summaryPath = join(folder, 'summary.md')
  const env = { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summaryPath }
  const report = join(folder, 'report.json')
  const { code, stderr } = await run(`--report ${report}`, { env })
  expect(code).toBe(0)
  expect(last(stderr)).toMatch(/^3 runs: 2 created, 1 up to date \(\d+ s\)\. Estimate: 3\.2 USD$/)
  expect(readFileSync(summaryPath, 'utf8')).toContain('2 created, 1 up to date. Estimate: 3.2 USD.\n')
  expect(JSON.parse(readFileSync(report, 'utf8')).summary).toMatchObject({
    estimate: 3.2,
    currency: 'USD',
    without_price: 0,
    estimates: { [IMAGE]: 0.2, [VIDEO]: 3 },
  })
  const estimates = service.rows().map(({ name, estimate }) => [name, estimate])
  expect(Object.fromEntries(estimates)).toEqual({
    fox: { millionths: 100_000, currency: 'USD' },
    hen: { millionths: 200_000, currency: 'USD' },
    film: { millionths: 3_000_000, currency: 'USD' },
  })
  const again = await run('--json')
  expect(last((await run()).stderr)).toMatch(/^3 runs: 3 up to date \(0 s\)$/)
  expect(objects(again.stdout)[0].summary).toMatchObject({ estimate: 0, without_price: 0, estimates: {} })
})

it('the estimate of a batch counts a create whose outcome is unknown, and none that was refused', async () => {
  const { run } = await createBatch([FOX, HEN])
  const { code, stderr } = await run([], { faults: ['create:reset'] })
  expect(code).toBe(13)
  expect(stderr).toMatch(/^2 runs: 1 unconfirmed, 1 not started \(\d+ s\)\. Estimate: 0\.1 USD$/m)
  const refused = await createBatch([FOX])
  const noKey = await refused.run([], { env: { RUSHES_API_KEY: 'rk_no_such_key' } })
  expect(noKey.code).toBe(4)
  expect(noKey.stderr).toMatch(/^1 run: 1 failed \(\d+ s\)$/m)
})

it('--max-cost of a batch counts the rows that wait for others, and refuses it before anything is sent', async () => {
  const { run, created, lock } = await createBatch(FAMILY)
  expect(usageErrorOf(await run('--max-cost 1.799999'))).toContain(
    'The estimate is 1.8 USD, but --max-cost allows 1.799999 USD.',
  )
  expect([created(), lock()]).toEqual([[], undefined])
  outputOf(await run('--max-cost 1.8'))
  expect(created()).toHaveLength(4)
  // What is up to date costs nothing.
  outputOf(await run('--max-cost 0'))
})

it('RUSHES_MAX_COST refuses a batch and a --dry-run, which prints its plan, and does not concern --check', async () => {
  const { run } = await createBatch([FOX, HEN])
  const env = { RUSHES_MAX_COST: '0.2' }
  usageErrorOf(await run([], { env }))
  const dry = await run('--dry-run', { env })
  expect([dry.code, lines(dry.stdout).length]).toEqual([2, 2])
  expect(dry.stderr).toContain('Estimate: 0.3 USD\nerror: The estimate is 0.3 USD, but')
  expect((await run('--check', { env })).code).toBe(10)
})

it('--max-cost of a batch refuses a row without a price only if it may be created', async () => {
  // The service does not have this model, and so no price of it.
  const film = { ...FILM, model: 'acme/cinema-1' }
  const { run, service, created } = await createBatch([FOX, film], { [IMAGE]: PRICES[IMAGE] })
  expect(usageErrorOf(await run('--max-cost 100'))).toMatch(
    /1 run has no price in USD \(acme\/cinema-1\), so --max-cost cannot be checked/,
  )
  expect(created()).toEqual([])
  outputOf(await run('--max-cost 100 --only fox'))
  expect(created()).toEqual(['a fox'])
  await service.run(['config', 'set', 'prices', '{"acme/cinema-1":{"run":1}}'])
  outputOf(await run('--max-cost 100 --dry-run'))
})

it('--max-cost of a batch uses the prices of the service, which a plan requests too', async () => {
  const { run, service } = await createFamily([FOX], { hasList: true })
  expect((await run('--max-cost 0.5 --dry-run')).stderr).toContain('The estimate is 1 credit, but')
  expect(service.requests.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
    'GET /api/v1/models',
  ])
  expect((await run('--max-cost 100')).stderr).toMatch(/Estimate: 1 credit$/m)
})

it('a batch that --max-cost refuses writes its plan to the report and the job summary', async () => {
  const { run, folder } = await createBatch([FOX, HEN])
  const [report, summaryPath] = [join(folder, 'report.json'), join(folder, 'summary.md')]
  const env = { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summaryPath }
  usageErrorOf(await run(`--max-cost 0.2 --report ${report}`, { env }))
  expect(readFileSync(summaryPath, 'utf8')).toMatch(
    /\n2 runs: 2 to create\. Estimate: 0\.3 USD\.\n[\s\S]*\| create \| fox \|/,
  )
  expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
    runs: [{ action: 'create' }, { action: 'create' }],
    summary: { estimate: 0.3 },
  })
  usageErrorOf(await run('--max-cost 0.2 --json'))
})

it('the labels of a row are in the journal, are never sent, and change nothing that is up to date', async () => {
  const { run, write, service, lockPath } = await createFamily([{ ...FOX, label: ['spring', 'web'] }])
  outputOf(await run())
  expect(service.rows()).toMatchObject([{ labels: ['spring', 'web'] }])
  expect(JSON.stringify(service.creates())).not.toMatch(/label|spring/)
  expect(readFileSync(lockPath, 'utf8')).not.toMatch(/label|spring/)
  write([{ ...FOX, label: 'autumn' }])
  outputOf(await run('--check'))
})

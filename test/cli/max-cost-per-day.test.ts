/** `maxCostPerDay`: one sum of the estimates of 24 hours for `run`, `batch` and `mcp`. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { HttpRequest } from '../../src/host/http.js'
import { createFamily } from '../support/family.js'
import {
  createCliService,
  createInstantEngine,
  fillJournal,
  lines,
  outputOf,
  runCli,
  usageErrorOf,
} from '../support/index.js'
import { openMcp } from '../support/mcp.js'

const FOX = 'run image "a fox" --no-wait'

/** Images are estimated at 2 USD, and the limit is 5 USD. */
const LIMITED = { prices: { 'rushes/preview-image': { run: 2 } }, currency: 'USD', maxCostPerDay: 5 }
const createLimited = (profile: object = {}) => createCliService({ config: { ...LIMITED, ...profile } })

it('run creates nothing when its estimate and those of the last 24 hours would pass maxCostPerDay', async () => {
  const service = await createLimited()
  await service.create('-n 2')
  expect(usageErrorOf(await service.run(FOX))).toBe(
    'error: The estimate is 2 USD, and that of the last 24 hours 4 USD, but maxCostPerDay allows 5 USD: its create was not sent.\n' +
      '  To change the limit: `rushes config set maxCostPerDay <amount>`, ' +
      'or RUSHES_MAX_COST_PER_DAY.\n',
  )
  expect(service.creates()).toHaveLength(2)
  const dry = await service.run('run image "a fox" --dry-run')
  expect(dry).toMatchObject({ code: 2, stdout: expect.stringContaining('a fox') })
  outputOf(await service.run(FOX, { env: { RUSHES_MAX_COST_PER_DAY: '6' } }))
  service.clock.jump(86_400_000)
  outputOf(await service.run(FOX))
})

it('run stops its creates when another command takes the rest of maxCostPerDay, and says how many runs exist', async () => {
  const service = await createLimited()
  let isTaken = false
  const onRequest = async (request: HttpRequest) => {
    if (request.method === 'POST' && !isTaken) {
      isTaken = true
      await service.create()
    }
  }
  const { code, stdout, stderr } = await service.run('run image "a hen" -n 2', { onRequest })
  expect([code, lines(stdout).length]).toEqual([10, 1])
  expect(stderr).toContain(
    'but maxCostPerDay allows 5 USD: its create was not sent. 1 of 2 runs was created and is paid for.',
  )
  expect(service.rows().map(({ phase }) => phase)).toEqual(['running', 'succeeded'])
})

it('maxCostPerDay needs a price, and a journal that can be written', async () => {
  const service = await createLimited()
  expect(usageErrorOf(await service.run(`${FOX} --model acme/x`))).toContain(
    '1 run has no price in USD (acme/x), so maxCostPerDay cannot be checked.',
  )
  await service.run('list')
  const empty = fillJournal(join(service.home, 'state', 'journal.db'))
  expect(usageErrorOf(await service.run(FOX))).toMatch(/^error: Cannot use the journal .* Nothing was sent\./)
  expect(service.creates()).toEqual([])
  empty()
  // Without the limit, the run is only not remembered.
  outputOf(await service.run(FOX))
})

it('maxCostPerDay does not concern --local', async () => {
  const service = await createLimited({ maxCostPerDay: 0 })
  usageErrorOf(await service.run(FOX))
  const { home } = service
  const local = await runCli(`${FOX} --local`, { home, engine: createInstantEngine() })
  expect(local.code).toBe(0)
})

it('a batch creates nothing when its plan would pass maxCostPerDay', async () => {
  const { created, run } = await createFamily(
    ['fox', 'hen', 'cat'].map((name) => ({ name, prompt: name })),
    { config: LIMITED },
  )
  expect(usageErrorOf(await run())).toContain('The estimate is 6 USD, and that of the last 24 hours 0 USD')
  expect(created()).toEqual([])
  outputOf(await run('--only fox --only hen'))
})

it('a session of mcp refuses a create beyond maxCostPerDay, and counts nothing for it', async () => {
  const service = await createLimited()
  await service.create('-n 2')
  const mcp = await openMcp(service)
  const { error } = await mcp.call('create_image', { prompt: 'a fox' })
  expect(error).toMatchObject({ code: 'usage', message: expect.stringContaining('maxCostPerDay') })
  expect(service.creates()).toHaveLength(2)
})

/** `maxCostPerDay`: one sum of the estimates of 24 hours for `run`, `batch` and `mcp`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { MODELS_PATH } from '../../src/protocol/id.js'
import { bodyOf } from '../support/family.js'
import {
  type CliService,
  createCliService,
  createInstantEngine,
  fillJournal,
  rowsOf,
  runCli,
  temporaryFolder,
} from '../support/index.js'
import { openMcp, type ToolResult } from '../support/mcp.js'

const IMAGE = 'rushes/preview-image'
const FOX = 'run image "a fox" --no-wait'

/** A service whose images are estimated at 2 USD, with a limit of 5 USD. */
const createLimited = (profile: object = {}) =>
  createCliService({
    config: { prices: { [IMAGE]: { run: 2 } }, currency: 'USD', maxCostPerDay: 5, ...profile },
  })

const creates = ({ requests }: CliService) => requests.filter(({ method }) => method === 'POST').length

/** While the first create with this prompt is sent, another command takes the rest of the limit. */
function withOther(service: CliService, prompt: string): Fetch {
  let isTaken = false
  return async (request) => {
    if (!isTaken && request.method === 'POST' && bodyOf(request.body).input.prompt === prompt) {
      isTaken = true
      expect((await service.run('run image "the other" --no-wait')).code).toBe(0)
    }
    return service.counting(request)
  }
}

it('run creates nothing when its estimate would pass the limit together with the last 24 hours', async () => {
  const service = await createLimited()
  expect((await service.run('run image x -n 2 --no-wait')).code).toBe(0)
  const { code, stderr } = await service.run(FOX)
  expect({ code, created: creates(service) }).toEqual({ code: 2, created: 2 })
  expect(stderr).toBe(
    'error: The estimate is 2 USD, and that of the last 24 hours 4 USD, but maxCostPerDay allows 5 USD: its create was not sent.\n' +
      '  To change the limit: `rushes config set maxCostPerDay <amount>`, ' +
      'or RUSHES_MAX_COST_PER_DAY.\n',
  )
  const dry = await service.run('run image "a fox" --dry-run')
  expect(dry).toMatchObject({ code: 2, stdout: expect.stringContaining('a fox') })
  expect((await service.run(FOX, { env: { RUSHES_MAX_COST_PER_DAY: '6' } })).code).toBe(0)
  service.clock.jump(86_400_000)
  expect((await service.run(FOX)).code).toBe(0)
})

it('run stops its creates when another command takes the rest, and says how many runs exist', async () => {
  const service = await createLimited()
  const { code, stdout, stderr } = await service.run('run image "a fox" -n 2', {
    fetch: withOther(service, 'a fox'),
  })
  expect(code).toBe(10)
  expect(stdout.trim().split('\n')).toHaveLength(1)
  expect(stderr).toContain(
    'but maxCostPerDay allows 5 USD: its create was not sent. 1 of 2 runs was created and is paid for.',
  )
  expect(rowsOf(service.home).map(({ phase }) => phase)).toEqual(['running', 'succeeded'])
})

it('run needs a price, and a journal that can be written', async () => {
  const service = await createLimited()
  const unpriced = await service.run(`${FOX} --model acme/x`)
  expect(unpriced.stderr).toContain('1 run has no price in USD (acme/x), so maxCostPerDay cannot be checked.')
  await service.run('list')
  const empty = fillJournal(join(service.home, 'state', 'journal.db'))
  const unwritten = await service.run(FOX)
  expect(unwritten.stderr).toMatch(/^error: Cannot use the journal .* Nothing was sent\./)
  expect([unpriced.code, unwritten.code, creates(service)]).toEqual([2, 2, 0])
  empty()
  // Without the limit, the run is only not remembered.
  expect((await service.run(FOX)).code).toBe(0)
})

it('run is free with --local, whatever was spent', async () => {
  const service = await createLimited({ maxCostPerDay: 0 })
  expect((await service.run(FOX)).code).toBe(2)
  const { home } = service
  const local = await runCli(`${FOX} --local`, { home, engine: createInstantEngine() })
  expect(local.code).toBe(0)
})

async function createBatch() {
  const service = await createLimited()
  const manifest = join(temporaryFolder(), 'shots.yaml')
  const write = (...prompts: readonly string[]) =>
    writeFileSync(
      manifest,
      JSON.stringify(prompts.map((prompt) => ({ name: prompt.replace(/^a /, ''), kind: 'image', prompt }))),
    )
  return { service, write, run: (fetch?: Fetch) => service.run(`batch ${manifest}`, fetch && { fetch }) }
}

it('batch creates nothing when its plan would pass the limit', async () => {
  const { service, write, run } = await createBatch()
  write('a fox', 'a hen', 'a cat')
  const { code, stderr } = await run()
  expect({ code, created: creates(service) }).toEqual({ code: 2, created: 0 })
  expect(stderr).toContain('The estimate is 6 USD, and that of the last 24 hours 0 USD')
  write('a fox', 'a hen')
  expect((await run()).code).toBe(0)
  // What is up to date costs nothing.
  expect((await run()).code).toBe(0)
})

it('mcp: a session refuses a create beyond it, and counts nothing for it', async () => {
  const service = await createLimited()
  await service.run('run image x -n 2 --no-wait')
  const mcp = await openMcp(service)
  const { structured } = await mcp.call('create_image', { prompt: 'a fox' })
  expect(structured.error).toMatchObject({ code: 'usage', message: expect.stringContaining('maxCostPerDay') })
  expect((await mcp.call('list_models')).structured.left_in_session).toBe(20)
  expect(creates(service)).toBe(2)
})

it('mcp: of two sessions with one request_id at once, both return the run that reaches the limit', async () => {
  const service = await createLimited({ maxCostPerDay: 2 })
  const args = { prompt: 'a fox', request_id: 'fox' }
  const first = await openMcp(service)
  let created: Promise<ToolResult> | undefined
  const fetch: Fetch = async (request) => {
    // The second session has found no create, and asks for prices.
    if (request.url.pathname.endsWith(MODELS_PATH)) {
      created ??= first.begin('create_image', args)
      await created
    }
    return service.counting(request)
  }
  const second = await openMcp(service, { fetch })
  const { structured } = await second.call('create_image', args)
  expect(structured.runs).toMatchObject([{ id: (await created)?.structured.runs[0].id, status: 'succeeded' }])
  expect(creates(service)).toBe(1)
})

it('config: it is set as an amount', async () => {
  const service = await createCliService()
  expect((await service.run('config set maxCostPerDay 20')).code).toBe(0)
  expect((await service.run('config get maxCostPerDay')).stdout).toBe('20\n')
  const { code, stderr } = await service.run('config set maxCostPerDay "20 USD"')
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('is not an amount') })
})

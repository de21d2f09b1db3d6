/** What a command makes of each fault: the exit code, the words, and what reached the service. By the clock of the test. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { type CliService, createCliService, type Ran, runCli, withoutList } from '../support/cli.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { type FaultyFetch, withFaults } from '../support/faults.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** A real PNG, and bytes behind it, so that it can break off late. */
const PICTURE = Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(5_000, 'x')])

let service: CliService
beforeAll(async () => {
  service = await createCliService({ engine: createInstantEngine({ bytes: PICTURE }) })
})

interface Tried extends Ran {
  readonly fetch: FaultyFetch
  /** Where the output goes. */
  readonly folder: string
  /** How long it took by the clock. */
  readonly tookMs: number
  /** Another command of the same user, without faults. */
  again(...argv: readonly string[]): Promise<Ran>
}

/** One `run image` that downloads, with these faults in front of the service. */
async function tried(
  faults: readonly string[],
  argv: readonly string[] = [],
  change = (fetch: Fetch) => fetch,
): Promise<Tried> {
  // The window of the service's rate limit passes.
  await service.clock.advance(10_000)
  const fetch = withFaults(service.fetch, faults, service.clock)
  const [folder, home] = [temporaryFolder(), temporaryFolder()]
  const env = {
    RUSHES_BASE_URL: service.baseUrl,
    RUSHES_API_KEY: service.apiKey,
    RUSHES_IMAGE_MODEL: 'rushes/preview-image',
  }
  const run = (words: readonly string[], through: Fetch) =>
    runCli(words, { home, env, clock: service.clock, fetch: withoutList(through) })
  const before = service.clock.monotonic()
  const ran = await run(['run', 'image', 'a fox', '-o', join(folder, 'fox.png'), ...argv], change(fetch))
  const tookMs = service.clock.monotonic() - before
  return { ...ran, fetch, folder, tookMs, again: (...words) => run(words, service.fetch) }
}

const fileOf = ({ folder }: Tried): Buffer => readFileSync(join(folder, 'fox.png'))
const runId = /run_\w+/

describe('a create', () => {
  it.each([
    ['create:lose', 1],
    ['create:500', 0],
    ['create:reset', 0],
    ['create:stall', 0],
  ])('%s: 13, sent once, and %d runs with an unknown outcome', async (fault, runs) => {
    const ran = await tried([fault])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 13, stdout: '' })
    expect(ran.stderr).toContain('A run may exist and cost money')
    expect(ran.stderr).toContain('before you send it again')
    expect(ran.fetch.seen.map(({ place }) => place)).toEqual(['create'])
    expect(ran.fetch.reached('create')).toBe(runs)
    expect(readdirSync(ran.folder)).toEqual([])
  })

  it.each([['create:nonsense']])(
    '%s: 13, since it was accepted, with the whole response shown',
    async (fault) => {
      const { code, stderr, fetch } = await tried([fault])
      expect(code).toBe(13)
      expect(stderr).toContain('accepted the run (201), but the response contains no run id')
      expect(stderr).toContain('Please sign in')
      expect(fetch.reached('create')).toBe(1)
    },
  )

  it.each([['create:cut:10'], ['create:truncate'], ['create:corrupt'], ['create:hang:0']])(
    '%s: the body of the 201 is lost, and Location in its head has the run',
    async (fault) => {
      const ran = await tried([fault])
      expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: `${ran.folder}/fox.png\n` })
      expect(ran.fetch.reached('create')).toBe(1)
    },
  )

  it('keeps the id that arrived in a body that stalls, and follows the run', async () => {
    const withoutLocation =
      (fetch: Fetch): Fetch =>
      async (request) => {
        const response = await fetch(request)
        return { ...response, header: (name) => (name === 'location' ? undefined : response.header(name)) }
      }
    const ran = await tried(['create:hang:60'], [], withoutLocation)
    expect(ran.code).toBe(0)
    expect(JSON.parse((await ran.again('list', '--json')).stdout)).toMatchObject({
      id: expect.stringMatching(runId),
      status: 'succeeded',
    })
    expect(ran.fetch.reached('create')).toBe(1)
  })

  it.each([
    ['create:429:RATE_LIMITED:2', [1_000, 3_000], 0],
    ['create:429', [1_000, 3_000, 7_000], 7],
  ])('%s is sent again after %j ms, and ends with %d', async (fault, waits, exit) => {
    const { code, stderr, fetch } = await tried([fault])
    const [first = 0, ...later] = fetch.seen.filter(({ place }) => place === 'create').map(({ atMs }) => atMs)
    expect({ code, waits: later.map((atMs) => atMs - first) }).toEqual({ code: exit, waits })
    expect(fetch.reached('create')).toBe(exit === 0 ? 1 : 0)
    expect(stderr.includes('The run was not created and nothing was paid for it')).toBe(exit !== 0)
  })

  it.each([
    ['create:400:invalid_input', 'invalid_input', 3],
    ['create:401:invalid_api_key', 'invalid_api_key', 4],
    ['create:402:insufficient_balance', 'insufficient_balance', 5],
    ['create:429:USAGE_EXCEEDED', 'USAGE_EXCEEDED', 5],
  ])('%s: the command ends at once, without the creates that follow', async (fault, code, exit) => {
    const ran = await tried([fault], ['-n', '5', '-d', '--json'])
    expect({ code: ran.code, sent: ran.fetch.seen.length }).toEqual({ code: exit, sent: 1 })
    const { error } = JSON.parse(ran.stderr.split('\n')[0] ?? '')
    expect(error).toMatchObject({ code, exit_code: exit, http_status: Number(fault.split(':')[1]) })
    expect(error.message).toContain('The run was not created and nothing was paid for it')
    expect(error.hint).toBeTruthy()
  })

  it.each([['create:redirect:/x']])('%s is never followed', async (fault) => {
    const { code, stderr, fetch } = await tried([fault])
    expect({ code, sent: fetch.seen.length }).toEqual({ code: 8, sent: 1 })
    expect(stderr).toMatch(/redirect \(307 to \/x\). Redirects are not followed. The run was not created/)
  })

  it('whose response is lost stops the command if it is the first, and later leaves the others', async () => {
    const flags = ['-n', '3', '-o', join(temporaryFolder(), '{id}.png')]
    const first = await tried(['create:lose:1'], flags)
    expect({ code: first.code, stdout: first.stdout }).toEqual({ code: 13, stdout: '' })
    expect(first.fetch.reached('create')).toBe(1)

    const later = await tried(['create:close:1'], flags)
    expect(later.code).toBe(13)
    expect(later.stdout.trim().split('\n')).toHaveLength(2)
    expect(later.fetch.seen.filter(({ place }) => place === 'create')).toHaveLength(3)
    expect(later.fetch.reached('create')).toBe(2)
  })
})

describe('a wait', () => {
  it.each([
    ['status:500:3'],
    ['status:reset:3'],
    ['status:stall:1'],
    ['status:nonsense:3'],
    ['latency:800ms'],
  ])('survives %s', async (fault) => {
    const ran = await tried([fault])
    expect(ran.code).toBe(0)
    expect(fileOf(ran).equals(PICTURE)).toBe(true)
    expect(ran.fetch.reached('create')).toBe(1)
  })

  it.each([
    ['status:500', 'answered 500', 8],
    ['status:reset', 'Could not reach', 9],
  ])('%s: %s, after two minutes and six tries, and how to resume', async (fault, words, exit) => {
    const { code, stderr, tookMs } = await tried([fault])
    expect(code).toBe(exit)
    expect(stderr).toContain(words)
    expect(stderr).toMatch(/Resume with `rushes wait .*run_\w+/)
    expect(tookMs).toBeGreaterThanOrEqual(120_000)
  })

  it('status:401 ends it at once, and names the run', async () => {
    const { code, stderr, fetch } = await tried(['status:401:invalid_api_key'])
    expect({ code, sent: fetch.seen.length }).toEqual({ code: 4, sent: 2 })
    expect(stderr).toMatch(runId)
  })

  it.each(
    [['run:fail', 'The run failed']].concat([['run:fail:out of paint:1', 'The run failed: out of paint']]),
  )('%s: 10 with the reason, and nothing is downloaded', async (fault, words) => {
    const ran = await tried([fault])
    expect(ran.code).toBe(10)
    expect(ran.stderr).toContain(words)
    expect(ran.stderr).toMatch(runId)
    expect(existsSync(join(ran.folder, 'fox.png'))).toBe(false)
  })

  it.each([['run:never']])('%s: 11 when the time limit has passed', async (fault) => {
    const { code, stderr, tookMs } = await tried([fault], ['--timeout', '1m'])
    expect(code).toBe(11)
    expect(Math.floor(tookMs / 60_000)).toBe(1)
    expect(stderr).toMatch(/run_\w+ is still running after/)
    expect(stderr).toMatch(/rushes wait .*run_\w+/)
  })
})

describe('a download', () => {
  it.each([
    ['output:cut:1000:2'],
    ['output:truncate::2'],
    ['output:hang:100:1'],
    ['output:expire::1'],
    ['output:expire:403:1'],
    ['output:slow:1000:9'],
    ['output:nonsense:empty:1'],
  ])('is complete in spite of %s', async (fault) => {
    const ran = await tried([fault])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: `${ran.folder}/fox.png\n` })
    expect(fileOf(ran).equals(PICTURE)).toBe(true)
    expect(readdirSync(ran.folder)).toEqual(['fox.png'])
    expect(ran.fetch.strikes.length).toBeGreaterThan(0)
    expect(ran.fetch.reached('create')).toBe(1)
  })

  it.each([
    ['output:truncate', 6, 'of 5070 bytes'],
    ['output:cut:10', 6, 'the connection was reset'],
    ['output:500', 6, 'the host answered 500'],
    ['output:410', 1, 'the host answered 410'],
    ['output:expire', 2, 'the host answered 410'],
  ])(
    '%s: 12 after %d tries, the run is paid for, and no partial file is left',
    async (fault, tries, words) => {
      const ran = await tried([fault])
      expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 12, stdout: '' })
      expect(ran.stderr).toContain(words)
      expect(ran.stderr).toContain('The run succeeded and is paid for')
      expect(ran.stderr).toMatch(/rushes (wait|download) .*run_\w+/)
      expect(ran.fetch.seen.filter(({ place }) => place === 'output')).toHaveLength(tries)
      expect(readdirSync(ran.folder).filter((name) => !name.startsWith('.'))).toEqual([])
    },
  )

  it('after a 12, wait fetches it and pays nothing', async () => {
    const ran = await tried(['output:410'])
    const [id = ''] = runId.exec(ran.stderr) ?? []
    expect((await ran.again('wait', id, '-o', join(ran.folder, 'fox.png'))).code).toBe(0)
    expect(fileOf(ran).equals(PICTURE)).toBe(true)
  })

  it.each([['output:corrupt']])('%s is not told by the response: the bytes are kept', async (fault) => {
    const ran = await tried([fault])
    expect(ran.code).toBe(0)
    expect(fileOf(ran).byteLength).toBe(PICTURE.byteLength)
    expect(fileOf(ran).equals(PICTURE)).toBe(false)
  })
})

describe('serve --fault', () => {
  it.each([
    [['--fault', 'create:lsoe'], /--fault create:lsoe is not a valid fault\..*create:429:RATE_LIMITED:2/s],
    [['--fault', 'create:lose', '--fault', 'sttus:500'], /--fault sttus:500 is not a valid fault/],
    [['--fault', 'latency:800'], /--fault latency:800: "800" is not a valid duration.*800ms/s],
  ])('%j: 2, and nothing is begun', async (flags, words) => {
    const home = temporaryFolder()
    const { code, stdout, stderr } = await runCli(['serve', '--port', '0', ...flags], { home })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(words)
    expect(existsSync(join(home, 'state', 'service'))).toBe(false)
  })
})

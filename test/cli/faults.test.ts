/** What a command makes of each fault: the exit code, the words, and what reached the service. By the clock of the test. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { type CliService, createCliService, type Ran, runCli } from '../support/cli.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { type FaultyFetch, withFaults } from '../support/faults.js'
import { temporaryFolder } from '../support/service.js'

/** A real PNG, and bytes behind it, so that it can break off late. */
const PICTURE = Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(5_000, 'x')])

interface Tried extends Ran {
  readonly fetch: FaultyFetch
  readonly service: CliService
  readonly folder: string
  /** How long it took by the clock. */
  readonly tookMs: number
}

/** One `run image` that downloads, against a service with these faults. */
async function tried(faults: readonly string[], argv: readonly string[] = []): Promise<Tried> {
  const service = await createCliService({ engine: createInstantEngine({ bytes: PICTURE }) })
  const fetch = withFaults(service.fetch, faults, service.clock)
  const folder = temporaryFolder()
  const before = service.clock.monotonic()
  const ran = await service.run(['run', 'image', 'a fox', '-o', join(folder, 'fox.png'), ...argv], { fetch })
  return { ...ran, fetch, service, folder, tookMs: service.clock.monotonic() - before }
}

const fileOf = ({ folder }: Tried): Buffer => readFileSync(join(folder, 'fox.png'))
const runId = /run_\w+/

describe('a create', () => {
  it.each([
    ['create:lose', 1],
    ['create:500', 0],
    ['create:502:acted', 1],
    ['create:reset', 0],
    ['create:reset:head=30', 1],
    ['create:stall', 0],
    ['create:200', 0],
    ['create:nonsense:no-http', 1],
  ])('%s: 13, sent once, and %d runs of which nobody knows', async (fault, runs) => {
    const ran = await tried([fault])
    expect(ran.code).toBe(13)
    expect(ran.stdout).toBe('')
    expect(ran.stderr).toContain('A run may exist and cost money')
    expect(ran.stderr).toContain('Do not send it again before you have looked')
    expect(ran.fetch.seen.map(({ place }) => place)).toEqual(['create'])
    expect(ran.fetch.reached('create')).toBe(runs)
    expect(readdirSync(ran.folder)).toEqual([])
  })

  it.each(['html', 'text', 'empty', 'list', 'object'])(
    'create:nonsense:%s: 13, since it was accepted, with the whole answer shown',
    async (kind) => {
      const { code, stderr, fetch } = await tried([`create:nonsense:${kind}`])
      expect(code).toBe(13)
      expect(stderr).toContain('accepted the run (201), but the response contains no run id')
      expect(stderr).toContain(
        { html: 'Please sign in', text: 'OK', empty: '(empty)', list: '[]', object: '"ok"' }[kind],
      )
      expect(fetch.reached('create')).toBe(1)
    },
  )

  it.each(['create:reset:10', 'create:truncate', 'create:corrupt', 'create:stall:0'])(
    '%s: the body of the 201 is lost, and its head has the way to the run',
    async (fault) => {
      const ran = await tried([fault])
      expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: `${ran.folder}/fox.png\n` })
      expect(ran.fetch.reached('create')).toBe(1)
    },
  )

  it.each(['create:reset:60', 'create:truncate:60', 'create:stall:60'])(
    '%s: the id that arrived in the torn body is kept, and the run is followed',
    async (fault) => {
      const service = await createCliService({ engine: createInstantEngine({ bytes: PICTURE }) })
      const faulty = withFaults(service.fetch, [fault], service.clock)
      const fetch: Fetch = async (request) => {
        const response = await faulty(request)
        return { ...response, header: (name) => (name === 'location' ? undefined : response.header(name)) }
      }
      const { code, stdout } = await service.run(['run', 'image', 'a fox'], { fetch })
      expect(code).toBe(0)
      expect(stdout).toMatch(/^http:\S+\n$/)
      const listed = await service.run(['list', '--json'])
      expect(JSON.parse(listed.stdout)).toMatchObject({
        id: expect.stringMatching(runId),
        status: 'succeeded',
      })
      expect(faulty.reached('create')).toBe(1)
    },
  )

  it('create:429:RATE_LIMITED:2 is waited out: 1 s, then 2 s', async () => {
    const { code, fetch } = await tried(['create:429:RATE_LIMITED:2'])
    expect(code).toBe(0)
    const [first = 0, ...later] = fetch.seen.filter(({ place }) => place === 'create').map(({ atMs }) => atMs)
    expect(later.map((atMs) => atMs - first)).toEqual([1_000, 3_000])
    expect(fetch.reached('create')).toBe(1)
  })

  it('create:429 with a wish of the service waits that long', async () => {
    const { code, fetch } = await tried(['create:429:RATE_LIMITED;retry-after=20:1'])
    expect(code).toBe(0)
    const [first, second] = fetch.seen
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBe(20_000)
  })

  it.each(['create:429::9', 'create:429:RATE_LIMITED', 'create:429:SOMETHING'])(
    '%s: 7 after three waits, and nothing was created',
    async (fault) => {
      const { code, stderr, fetch, tookMs } = await tried([fault])
      expect({ code, tookMs, sent: fetch.seen.length }).toEqual({ code: 7, tookMs: 7_000, sent: 4 })
      expect(stderr).toContain('No run was created and nothing was paid')
      expect(fetch.reached('create')).toBe(0)
    },
  )

  it.each([
    ['create:400:invalid_input', 3],
    ['create:418', 3],
    ['create:401:invalid_api_key', 4],
    ['create:402:insufficient_balance', 5],
    ['create:403', 5],
    ['create:429:USAGE_EXCEEDED', 5],
  ])('%s: %d at once, and the rest of the command is not sent', async (fault, exit) => {
    const { code, stderr, fetch } = await tried([fault], ['-n', '5', '-d'])
    expect({ code, sent: fetch.seen.length }).toEqual({ code: exit, sent: 1 })
    expect(stderr).toContain('No run was created and nothing was paid')
  })

  it('create:redirect is never followed', async () => {
    const { code, stderr, fetch } = await tried(['create:redirect:/elsewhere'])
    expect({ code, sent: fetch.seen.length }).toEqual({ code: 8, sent: 1 })
    expect(stderr).toMatch(/redirect \(307 to \/elsewhere\). Redirects are not followed. No run was created/)
  })

  it('a first that is lost stops the rest of the command; one that is lost later leaves the others', async () => {
    const service = await createCliService()
    const first = withFaults(service.fetch, ['create:lose::1'], service.clock)
    const stopped = await service.run(['run', 'image', 'a fox', '-n', '3'], { fetch: first })
    expect({ code: stopped.code, stdout: stopped.stdout }).toEqual({ code: 13, stdout: '' })
    expect(first.reached('create')).toBe(1)

    const later = withFaults(service.fetch, ['create:close::1'], service.clock)
    const ran = await service.run(['run', 'image', 'a fox', '-n', '2'], { fetch: later })
    expect(ran.code).toBe(13)
    expect(ran.stdout.trim().split('\n')).toHaveLength(1)
    expect(later.seen.filter(({ place }) => place === 'create')).toHaveLength(2)
    expect(later.reached('create')).toBe(1)
  })

  it('what comes next can be said while the command runs', async () => {
    const service = await createCliService()
    const fetch = withFaults(service.fetch, [], service.clock)
    fetch.next('create', '429:RATE_LIMITED')
    fetch.next('status', 'reset')
    fetch.next('run', 'fail:out of paint')
    const { code } = await service.run(['run', 'image', 'a fox'], { fetch })
    expect(code).toBe(10)
    expect(fetch.strikes).toEqual([
      'create answered 429 RATE_LIMITED',
      'run will end as failed',
      'status was reset before the service acted',
    ])
  })
})

describe('a wait', () => {
  it.each([
    'status:500::3',
    'status:429:RATE_LIMITED:3',
    'status:reset::3',
    'status:lose::3',
    'status:stall::1',
    'status:truncate::3',
    'status:corrupt::3',
    'status:nonsense::3',
    'status:nonsense:huge:1',
    'status:404:run_not_found:1',
    'status:redirect:/elsewhere:1',
    'status:redirect:https://elsewhere.example/:1',
    'latency:800ms',
  ])('survives %s', async (fault) => {
    const ran = await tried([fault])
    expect(ran.code).toBe(0)
    expect(fileOf(ran).equals(PICTURE)).toBe(true)
    expect(ran.fetch.reached('create')).toBe(1)
  })

  it.each([
    ['status:500', 8, 'answered 500'],
    ['status:nonsense', 8, 'sent an invalid response'],
    ['status:reset', 9, 'Could not reach'],
    ['status:429', 7, 'answered 429'],
  ])('%s: %d after two minutes and six tries, and how to pick the run up', async (fault, exit, words) => {
    const { code, stderr, tookMs } = await tried([fault])
    expect(code).toBe(exit)
    expect(stderr).toContain(words)
    expect(stderr).toMatch(/Resume with: rushes wait .*run_\w+/)
    expect(tookMs).toBeGreaterThanOrEqual(120_000)
  })

  it.each([
    ['status:401:invalid_api_key', 4],
    ['status:402:insufficient_balance', 5],
    ['status:403', 5],
  ])('%s ends it at once with %d', async (fault, exit) => {
    const { code, stderr, fetch } = await tried([fault])
    expect({ code, sent: fetch.seen.length }).toEqual({ code: exit, sent: 2 })
    expect(stderr).toMatch(runId)
  })

  it('run:fail: 10 with the reason, and nothing is downloaded', async () => {
    const ran = await tried(['run:fail:out of paint:1'])
    expect(ran.code).toBe(10)
    expect(ran.stderr).toContain('The run failed: out of paint')
    expect(ran.stderr).toMatch(runId)
    expect(existsSync(join(ran.folder, 'fox.png'))).toBe(false)
  })

  it('run:never: 11 when the limit has passed', async () => {
    const { code, stderr, tookMs } = await tried(['run:never'], ['--timeout', '5m'])
    expect(code).toBe(11)
    expect(Math.floor(tookMs / 60_000)).toBe(5)
    expect(stderr).toMatch(/run_\w+ is still running after/)
    expect(stderr).toMatch(/rushes wait .*run_\w+/)
  })

  it('status:500 for a single look: three steps, then 8', async () => {
    const service = await createCliService()
    const fetch = withFaults(service.fetch, ['status:500'], service.clock)
    const { code } = await service.run(['status', 'run_1'], { fetch })
    expect({ code, sent: fetch.seen.length }).toEqual({ code: 8, sent: 4 })
  })
})

describe('a download', () => {
  it.each([
    'output:reset:1000:2',
    'output:reset::5',
    'output:reset:head=20:1',
    'output:lose::1',
    'output:truncate::2',
    'output:truncate:0:1',
    'output:stall:100:1',
    'output:503:;retry-after=30:1',
    'output:429::1',
    'output:expire::1',
    'output:expire:403:1',
    'output:slow:1kB',
    'output:delay:20s',
    'output:nonsense:empty:1',
    'output:nonsense:no-http:1',
  ])('arrives whole in spite of %s', async (fault) => {
    const ran = await tried([fault])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: `${ran.folder}/fox.png\n` })
    expect(fileOf(ran).equals(PICTURE)).toBe(true)
    expect(readdirSync(ran.folder)).toEqual(['fox.png'])
    expect(ran.fetch.strikes.length).toBeGreaterThan(0)
    expect(ran.fetch.reached('create')).toBe(1)
  })

  it.each([
    ['output:truncate', 6, 'of 5070 bytes'],
    ['output:reset:10', 6, 'the connection was reset'],
    ['output:500', 6, 'the host answered 500'],
    ['output:410', 1, 'the host answered 410'],
    ['output:404', 1, 'the host answered 404'],
    ['output:expire', 2, 'the host answered 410'],
  ])('%s: 12 after %d tries, the run is paid for, and nothing half is left', async (fault, tries, words) => {
    const ran = await tried([fault])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 12, stdout: '' })
    expect(ran.stderr).toContain(words)
    expect(ran.stderr).toContain('The run succeeded and is paid for')
    expect(ran.stderr).toMatch(/rushes (wait|download) .*run_\w+/)
    expect(ran.fetch.seen.filter(({ place }) => place === 'output')).toHaveLength(tries)
    expect(readdirSync(ran.folder).filter((name) => !name.startsWith('.'))).toEqual([])
  })

  it('after a 12, wait fetches it and pays nothing', async () => {
    const { service, folder, stderr } = await tried(['output:410'])
    const [id = ''] = runId.exec(stderr) ?? []
    const again = await service.run(['wait', id, '-o', join(folder, 'fox.png')])
    expect(again.code).toBe(0)
    expect(readFileSync(join(folder, 'fox.png')).equals(PICTURE)).toBe(true)
  })

  it('output:corrupt is not told by the answer: the bytes that came are kept', async () => {
    const ran = await tried(['output:corrupt:100'])
    expect(ran.code).toBe(0)
    expect(fileOf(ran).byteLength).toBe(PICTURE.byteLength)
    expect(fileOf(ran).equals(PICTURE)).toBe(false)
  })
})

describe('serve --fault', () => {
  it.each([
    [['--fault', 'create:lsoe'], /--fault create:lsoe: Unknown fault "lsoe".*nearest: lose/],
    [
      ['--fault', 'create:lose', '--fault', 'sttus:500'],
      /--fault sttus:500: Unknown place "sttus".*nearest: status/,
    ],
    [['--fault', 'latency:800'], /--fault latency:800: "800" is not a valid duration.*800ms/s],
  ])('%j: 2, and nothing is begun', async (flags, words) => {
    const home = temporaryFolder()
    const { code, stdout, stderr } = await runCli(['serve', '--port', '0', ...flags], { home })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(words)
    expect(existsSync(join(home, 'state', 'service'))).toBe(false)
  })
})

describe('docs/faults.md', () => {
  const rows = [
    ...readFileSync('docs/faults.md', 'utf8').matchAll(/^\| (`[a-z]+:[^|]+`) \| (\d+) \| /gm),
  ].flatMap(([, faults = '', exit]) =>
    [...faults.matchAll(/`([^`]+)`/g)].map(([, fault = '']) => [fault, Number(exit)] as const),
  )

  it('has a table of exit codes', () => expect(rows.length).toBeGreaterThan(20))

  it.each(rows)('%s: %d', async (fault, exit) => {
    expect((await tried([fault], ['--timeout', '5m'])).code).toBe(exit)
  })
})

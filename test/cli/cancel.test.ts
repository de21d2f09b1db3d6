/** `rushes cancel`, and what the other commands say of a canceled or failed run. */
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import type { RunFailure } from '../../src/service/store/run.js'
import {
  addRow,
  type CliService,
  createCliService,
  openStoreOf,
  rowsOf,
  runCli,
  SET,
  scripted,
} from '../support/index.js'
import { claimRun, held } from '../support/runs.js'

const TERMINAL = { stdin: true, stdout: true, stderr: true }

/** A service that renders nothing. */
const createQueue = () => createCliService({ rendering: false })

async function created(service: CliService, ...words: string[]): Promise<readonly string[]> {
  const { stdout } = await service.run(['run', 'image', 'a fox', '--no-wait', ...words])
  return stdout.trim().split('\n')
}

const statuses = ({ home }: CliService) => rowsOf(home).map(({ status }) => status)

it('rushes cancel cancels the named runs, prints them as status does, and writes their end to the journal', async () => {
  const service = await createQueue()
  const [first = '', second = '', third = ''] = await created(service, '-n', '3')
  expect(await service.run(`cancel ${first}`)).toMatchObject({
    ...{ code: 0, stdout: `${first}\tcanceled\t\n`, stderr: '' },
  })
  const piped = await service.run('cancel - --json', { stdin: `${second}\n` })
  expect(JSON.parse(piped.stdout)).toMatchObject({
    id: second,
    kind: 'image',
    status: 'canceled',
    output: null,
  })
  expect(await service.run('cancel --last -q')).toMatchObject({
    code: 0,
    stdout: `${third}\tcanceled\t\n`,
  })
  expect(statuses(service)).toEqual(['canceled', 'canceled', 'canceled'])
  const listed = await service.run('list --status canceled')
  expect(listed.stdout.match(/\tcanceled\t/g)).toHaveLength(3)
})

it('rushes cancel --all cancels the unfinished runs of the service with the label, and nothing is left', async () => {
  const service = await createQueue()
  const drafts = await created(service, '-n', '2', '--label', 'draft')
  const [other = ''] = await created(service)
  const some = await service.run('cancel --all --label draft')
  expect(
    some.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[0]),
  ).toEqual(drafts)
  expect((await service.run('cancel --all')).stdout).toContain(other)
  const none = await service.run('cancel --all')
  expect(none).toMatchObject({ code: 0, stdout: '' })
  expect(none.stderr).toContain('No unfinished runs')
})

it.each([
  ['n\n', [], 2, 2],
  ['y\n', [], 0, 0],
  ['', ['--yes'], 0, 0],
])('rushes cancel --all of several runs asks on a terminal (%j %j)', async (stdin, flags, code, left) => {
  const service = await createQueue()
  await created(service, '-n', '2')
  const ran = await service.run(['cancel', '--all', ...flags], { stdin, tty: TERMINAL })
  expect(ran.code).toBe(code)
  expect(ran.stderr.includes('Cancel all 2 unfinished runs? [y/N]')).toBe(flags.length === 0)
  if (code === 2) expect(ran.stderr).toContain('Nothing was canceled.')
  expect(statuses(service).filter((status) => status !== 'canceled')).toHaveLength(left)
})

it('rushes cancel shows a run that has ended as it is', async () => {
  const service = await createCliService()
  const { stdout } = await service.run('run image "a fox" --json')
  const { id, output } = JSON.parse(stdout)
  const ran = await service.run(`cancel ${id}`)
  expect(ran).toMatchObject({ code: 0, stdout: `${id}\tsucceeded\t${output.urls[0]}\n` })
  expect(ran.stderr).toBe(`${id} had already ended (succeeded).\n`)
})

it.each([
  [404, { error: { code: 'not_found', message: 'Not found.' } }],
  [405, { error: { code: 'method_not_allowed', message: 'no' } }],
])(
  'rushes cancel of a service that cannot cancel is exit 3 (%i %j), and the journal stays as it is',
  async (status, body) => {
    const service = await createQueue()
    const [first = '', second = ''] = await created(service, '-n', '2')
    const before = rowsOf(service.home)
    const ran = await service.run(`cancel ${first} ${second}`, { fetch: scripted({ status, body }).fetch })
    expect([ran.code, ran.stdout]).toEqual([3, ''])
    const sentence = 'This service cannot cancel runs; the run continues.'
    expect(ran.stderr).toBe(
      `error: ${first}: ${sentence}\nerror: 1 more run: ${sentence}\n  Also ${second}.\n`,
    )
    expect(rowsOf(service.home)).toEqual(before)
  },
)

it.each([
  [
    501,
    { error: { code: 'not_implemented', message: 'no' } },
    'This service cannot cancel runs; the run continues.',
  ],
  [409, { error: { code: 'too_late', message: 'no' } }, 'The run was not canceled and may continue.'],
])(
  'rushes cancel that the service refuses is exit 3 and says that the run continues (%i)',
  async (status, body, sentence) => {
    const service = await createQueue()
    const [id = ''] = await created(service)
    const { fetch, requests } = scripted({ status, body })
    const ran = await service.run(`cancel ${id}`, { fetch })
    expect([ran.code, ran.stdout, requests.length]).toEqual([3, '', 1])
    expect(ran.stderr).toContain(sentence)
  },
)

it('rushes cancel of a run that the service does not stop is exit 10 and says that the run continues', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  const { fetch } = scripted({ status: 200, body: { id, status: 'processing' } })
  const ran = await service.run(`cancel ${id}`, { fetch })
  expect([ran.code, ran.stdout]).toEqual([10, `${id}\tprocessing\t\n`])
  expect(ran.stderr).toContain(`error: ${id}: The run is not canceled (processing); it continues.`)
})

it('rushes cancel is exit 10 where the job of the run may continue at its provider', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  const body = { id, status: 'canceled', error: { code: 'outcome_unknown', message: 'no worker' } }
  const ran = await service.run(`cancel ${id}`, { fetch: scripted({ status: 200, body }).fetch })
  expect(ran.code).toBe(10)
  expect(ran.stderr).toContain('The job of the run was not canceled; it may continue.')
})

it('rushes cancel asks for the state of the run after a 204 without content, and cancels it only once', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  const { fetch, requests } = scripted(
    { status: 204, body: '' },
    { status: 503 },
    { status: 200, body: { id, status: 'canceled' } },
  )
  expect(await service.run(`cancel ${id}`, { fetch })).toMatchObject({
    code: 0,
    stdout: `${id}\tcanceled\t\n`,
  })
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET'])
})

it('rushes cancel cancels nothing if one of the runs was created elsewhere', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  addRow(service.home, { id: 'run_elsewhere', address: 'https://a.example' })
  service.requests.splice(0)
  const ran = await service.run(`cancel ${id} run_elsewhere`)
  expect([ran.code, ran.stdout, service.requests]).toEqual([2, '', []])
  expect(ran.stderr).toContain('https://a.example')
})

it('rushes cancel of an unknown run is exit 6, without a key exit 4, and without an id exit 2', async () => {
  const service = await createQueue()
  expect((await service.run('cancel run_none')).code).toBe(6)
  expect((await service.run('cancel run_none', { env: { RUSHES_API_KEY: 'wrong' } })).code).toBe(4)
  expect(
    (await runCli('cancel run_none', { env: { RUSHES_BASE_URL: SET.RUSHES_BASE_URL ?? '' } })).code,
  ).toBe(4)
  expect((await service.run('cancel')).code).toBe(2)
  expect((await service.run('cancel -', { stdin: '' })).code).toBe(2)
})

it('rushes cancel sends the request again after a lost response and after a 503', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  let tries = 0
  const fetch: Fetch = async (request) => {
    tries++
    if (tries === 1) {
      await service.fetch(request)
      throw new Error('read ECONNRESET')
    }
    if (tries === 2) return scripted({ status: 503 }).fetch(request)
    return service.fetch(request)
  }
  expect(await service.run(`cancel ${id}`, { fetch })).toMatchObject({
    code: 0,
    stdout: `${id}\tcanceled\t\n`,
  })
  expect(tries).toBe(3)
})

const end = async (failure: RunFailure) => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  const store = await openStoreOf(service)
  await claimRun(store, 'me')
  await store.failRun(held(id, 'me', service.clock.now()), failure)
  await store.close()
  const waited = await service.run(`wait ${id}`)
  const { error } = JSON.parse((await service.run(`status ${id} --json`)).stdout)
  const row = /^error\t(.*)$/m.exec((await service.run(`show ${id}`)).stdout)?.[1]
  const listed = JSON.parse((await service.run('list --json')).stdout.split('\n')[0] ?? '')
  return { waited, message: error.message, row, listed: listed.error.message }
}

it.each([
  ['render_failed', 'Its price was refunded.', '`rushes show'],
  [
    'outcome_unknown',
    'Its price was not refunded, because the provider may have charged for it.',
    'A run may exist at the provider and cost money',
  ],
])(
  'a failed run with the code %s says in wait, status, show and list whether it was refunded',
  async (code, price, next) => {
    const { waited, message, row, listed } = await end({ code, message: 'out of paint' })
    expect(waited.code).toBe(10)
    expect(waited.stderr).toContain(
      `The run failed: out of paint. ${price}\n  Nothing was downloaded. ${next}`,
    )
    expect(message).toBe(`The run failed: out of paint. ${price}`)
    expect(row).toBe(`${code === 'outcome_unknown' ? code : 'run_failed'}: out of paint. ${price}`)
    expect(listed).toBe(`out of paint. ${price}`)
  },
)

it('a canceled run ends a wait with exit 10 and says whether it was refunded', async () => {
  const service = await createQueue()
  const [id = ''] = await created(service)
  await service.run(`cancel ${id}`)
  const { code, stderr } = await service.run(`wait ${id}`)
  expect(code).toBe(10)
  expect(stderr).toBe(
    `${id}: canceled (0 s)\nerror: ${id}: The run was canceled. Its price was refunded.\n` +
      `  Nothing was downloaded. \`rushes show ${id}\` shows its input.\n`,
  )
})

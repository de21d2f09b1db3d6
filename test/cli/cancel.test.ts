/** `rushes cancel`, and what the other commands say of a canceled or failed run. */
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import type { RunFailure } from '../../src/service/store/run.js'
import {
  addRow,
  type CliService,
  createCliService,
  createHome,
  lines,
  objects,
  outputOf,
  responseOf,
  runCli,
  type Scripted,
  SET,
  scripted,
  usageErrorOf,
} from '../support/index.js'
import { claimRun, held } from '../support/runs.js'
import { openStoreOf } from '../support/test-database.js'

const TERMINAL = { stdin: true, stdout: true, stderr: true }

/** A service that renders nothing. */
const createQueue = () => createCliService({ rendering: false })

/** The cancel of `run_1`, with these answers of its service. */
async function answered(...answers: readonly Scripted[]) {
  const { run, requests } = createHome({ journal: [{ id: 'run_1' }], answers })
  return { ...(await run('cancel run_1')), requests }
}

const statuses = ({ rows }: CliService) => rows().map(({ status }) => status)

it('cancel cancels the named runs, prints them as status does, and writes their end to the journal', async () => {
  const service = await createQueue()
  const [first, second, third] = await service.create('-n 3')
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
  expect(outputOf(await service.run('cancel --last -q'))).toBe(`${third}\tcanceled\t\n`)
  expect(statuses(service)).toEqual(['canceled', 'canceled', 'canceled'])
  const listed = await service.run('list --status canceled')
  expect(listed.stdout.match(/\tcanceled\t/g)).toHaveLength(3)
})

it('cancel --all cancels the unfinished runs of the service, with --label only those with the label', async () => {
  const service = await createQueue()
  const drafts = await service.create('-n 2 --label draft')
  const [other] = await service.create()
  const some = await service.run('cancel --all --label draft')
  expect(lines(some.stdout).map((line) => line.split('\t')[0])).toEqual(drafts)
  expect(outputOf(await service.run('cancel --all'))).toContain(other)
  const none = await service.run('cancel --all')
  expect(none).toMatchObject({ code: 0, stdout: '' })
  expect(none.stderr).toContain('No unfinished runs')
})

it.each([
  ['n\n', '', 2, 2],
  ['y\n', '', 0, 0],
  ['', '--yes', 0, 0],
])('cancel --all of several runs asks on a terminal (answer %j, %j)', async (stdin, flag, code, left) => {
  const service = await createQueue()
  await service.create('-n 2')
  const ran = await service.run(`cancel --all ${flag}`, { stdin, tty: TERMINAL })
  expect(ran.code).toBe(code)
  expect(ran.stderr.includes('Cancel all 2 unfinished runs? [y/N]')).toBe(flag === '')
  if (code === 2) expect(ran.stderr).toContain('Nothing was canceled.')
  expect(statuses(service).filter((status) => status !== 'canceled')).toHaveLength(left)
})

it('cancel prints a run that has ended as it is', async () => {
  const service = await createCliService()
  const { stdout } = await service.run('run image "a fox" --json')
  const { id, output } = JSON.parse(stdout)
  const ran = await service.run(`cancel ${id}`)
  expect(ran).toMatchObject({ code: 0, stdout: `${id}\tsucceeded\t${output.urls[0]}\n` })
  expect(ran.stderr).toBe(`${id} had already ended (succeeded).\n`)
})

it('cancel names runs that the service cannot cancel in one error, and leaves their rows in the journal', async () => {
  const service = await createQueue()
  const [first, second] = await service.create('-n 2')
  const before = service.rows()
  const { fetch } = scripted({ status: 404, body: { error: { code: 'not_found', message: 'Not found.' } } })
  const sentence = 'This service cannot cancel runs; the run continues.'
  expect(await service.run(`cancel ${first} ${second}`, { fetch })).toMatchObject({
    ...{ code: 3, stdout: '' },
    stderr: `error: ${first}: ${sentence}\nerror: 1 more run: ${sentence}\n  Also ${second}.\n`,
  })
  expect(service.rows()).toEqual(before)
})

it.each([
  [405, 'method_not_allowed', 'This service cannot cancel runs; the run continues.'],
  [501, 'not_implemented', 'This service cannot cancel runs; the run continues.'],
  [409, 'too_late', 'The run was not canceled and may continue.'],
])('cancel that is refused with %i %s ends with exit 3: %s', async (status, code, sentence) => {
  const ran = await answered({ status, body: { error: { code, message: 'no' } } })
  expect([ran.code, ran.stdout, ran.requests.length]).toEqual([3, '', 1])
  expect(ran.stderr).toContain(sentence)
})

it('cancel of a run that the service does not stop ends with exit 10, and the message says that it continues', async () => {
  const { code, stdout, stderr } = await answered({ status: 200, body: { status: 'processing' } })
  expect([code, stdout]).toEqual([10, 'run_1\tprocessing\t\n'])
  expect(stderr).toContain('error: run_1: The run is not canceled (processing); it continues.')
})

it('cancel ends with exit 10 if the job of the run may continue at its provider', async () => {
  const error = { code: 'outcome_unknown', message: 'no worker' }
  const { code, stderr } = await answered({ status: 200, body: { status: 'canceled', error } })
  expect(code).toBe(10)
  expect(stderr).toContain('The job of the run was not canceled; it may continue.')
})

it('cancel requests the status after a 204 without content, and cancels once', async () => {
  const { code, stdout, requests } = await answered(
    { status: 204, body: '' },
    { status: 503 },
    { status: 200, body: { status: 'canceled' } },
  )
  expect([code, stdout]).toEqual([0, 'run_1\tcanceled\t\n'])
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET'])
})

it('cancel cancels nothing if one of the runs was created elsewhere', async () => {
  const service = await createQueue()
  const [id] = await service.create()
  addRow(service.home, { id: 'run_elsewhere', address: 'https://a.example' })
  service.requests.length = 0
  expect(usageErrorOf(await service.run(`cancel ${id} run_elsewhere`))).toContain('https://a.example')
  expect(service.requests).toEqual([])
})

it('cancel ends with exit 6 for an unknown run, with 4 without a key that is accepted, and with 2 without an id', async () => {
  const service = await createQueue()
  expect((await service.run('cancel run_none')).code).toBe(6)
  expect((await service.run('cancel run_none', { env: { RUSHES_API_KEY: 'wrong' } })).code).toBe(4)
  expect(
    (await runCli('cancel run_none', { env: { RUSHES_BASE_URL: SET.RUSHES_BASE_URL ?? '' } })).code,
  ).toBe(4)
  usageErrorOf(await service.run('cancel'))
  usageErrorOf(await service.run('cancel -', { stdin: '' }))
})

it('cancel is sent again after a lost response and after a 503', async () => {
  const service = await createQueue()
  const [id] = await service.create()
  let tries = 0
  const fetch: Fetch = async (request) => {
    if (++tries === 2) return responseOf({ status: 503 })
    const response = await service.fetch(request)
    if (tries === 1) throw new Error('read ECONNRESET')
    return response
  }
  const { code, stdout } = await service.run(`cancel ${id}`, { fetch })
  expect([code, stdout, tries]).toEqual([0, `${id}\tcanceled\t\n`, 3])
})

const end = async (failure: RunFailure) => {
  const service = await createQueue()
  const [id = ''] = await service.create()
  const store = await openStoreOf(service)
  await claimRun(store, 'me')
  await store.failRun(held(id, 'me', service.clock.now()), failure)
  await store.close()
  const waited = await service.run(`wait ${id}`)
  const { error } = JSON.parse(outputOf(await service.run(`status ${id} --json`)))
  const row = /^error\t(.*)$/m.exec(outputOf(await service.run(`show ${id}`)))?.[1]
  const [listed] = objects(outputOf(await service.run('list --json')))
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
  'wait, status, show and list say of a failed run with the code %s whether it was refunded',
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

it('wait of a canceled run ends with exit 10, and the message says whether it was refunded', async () => {
  const service = await createQueue()
  const [id] = await service.create()
  await service.run(`cancel ${id}`)
  const { code, stderr } = await service.run(`wait ${id}`)
  expect(code).toBe(10)
  expect(stderr).toBe(
    `${id}: canceled (0 s)\nerror: ${id}: The run was canceled. Its price was refunded.\n` +
      `  Nothing was downloaded. \`rushes show ${id}\` shows its input.\n`,
  )
})

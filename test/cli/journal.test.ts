/** What `run` leaves in the journal, whatever becomes of the create. */
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { HttpFailure, type HttpRequest } from '../../src/host/http.js'
import {
  createCliService,
  createHome,
  fillJournal,
  ONE_PIXEL_PNG,
  outputOf,
  type Step,
  temporaryFolder,
  withJournal,
} from '../support/index.js'
import { stateBytes } from '../support/journal.js'

const RUN = 'run image "a fox"'

/** The files of the newest run. */
const filesOf = (home: string) =>
  withJournal(home, (journal) => journal.list({ limit: 1 }).flatMap((run) => journal.filesOf(run)))

/** Runs the command, and then reads the journal. */
async function runAgainst(answer: Step) {
  const { run, rows } = createHome({ answers: [answer] })
  return { ...(await run(RUN)), rows: rows() }
}

it('a create is in the journal before it is sent, gets its id with the 201, and then the end of its run', async () => {
  const service = await createCliService()
  const atSending: unknown[] = []
  const onRequest = (request: HttpRequest) => {
    if (request.method === 'POST') atSending.push(...service.rows().map(({ phase, id }) => ({ phase, id })))
  }
  const stdout = outputOf(await service.run(`${RUN} -o ${temporaryFolder()}/fox.png`, { onRequest }))
  expect(atSending).toEqual([{ phase: 'sending', id: undefined }])
  const [row] = service.rows()
  expect(row).toMatchObject({
    id: expect.stringMatching(/^run_/),
    key: undefined,
    address: 'http://127.0.0.1:1',
    profile: 'default',
    kind: 'image',
    model: 'rushes/preview-image',
    input: { prompt: 'a fox' },
    phase: 'succeeded',
    status: 'succeeded',
    urls: [expect.stringMatching(/^http/)],
    error: undefined,
  })
  expect(row?.elapsedMs).toBeGreaterThan(0)
  expect(filesOf(service.home)).toMatchObject([{ path: stdout.trim(), bytes: ONE_PIXEL_PNG.byteLength }])
  expect(stateBytes(service.home).includes('a fox')).toBe(true)
  expect(stateBytes(service.home).includes(service.apiKey)).toBe(false)
})

it('the journal has each of several runs, the newest first, with its profile', async () => {
  const service = await createCliService()
  await service.run('config set timeout 30m --profile studio')
  const ids = await service.create('-n 3 --profile studio')
  expect(service.rows()).toMatchObject(
    [...ids].reverse().map((id) => ({ id, phase: 'running', status: 'queued', profile: 'studio' })),
  )
})

const refused = (status: number, code = '') => ({ status, body: { error: { code } } })
it.each([
  ['was refused with 402', refused(402, 'insufficient_balance'), 5],
  ['was refused with 429', refused(429, 'RATE_LIMITED'), 7],
  ['was redirected', refused(302), 8],
  ['had no connection', new HttpFailure('broke', { sent: false, code: 'ECONNRESET' }), 9],
])('a create that %s leaves no row', async (_, answer, code) => {
  expect(await runAgainst(answer)).toMatchObject({ code, rows: [] })
})

it('a create that is sent again after a 429 has one row', async () => {
  const service = await createCliService()
  outputOf(await service.run(RUN, { faults: ['create:429:2'] }))
  expect([service.creates().length, service.rows().length]).toEqual([1, 1])
})

it('a create whose outcome is unknown stays unconfirmed, with its input and the response, and the message names its key', async () => {
  const { code, stderr, rows } = await runAgainst({ status: 500, body: '<html>oops</html>' })
  expect(code).toBe(13)
  expect(rows).toMatchObject([
    {
      id: undefined,
      key: expect.stringMatching(/^~[0-9a-f]{4}$/),
      phase: 'unconfirmed',
      status: 'unconfirmed',
      input: { prompt: 'a fox' },
      error: { code: 'submission_unknown' },
      answer: { status: 500, text: '<html>oops</html>' },
    },
  ])
  expect(stderr).toContain(`rushes forget '${rows[0]?.key}'`)
})

const statePath = (home: string, name: string) => join(home, 'state', name)
it('a state folder that cannot be written brings two warnings once each, and the run is created', async () => {
  const service = await createCliService()
  const inTheWay = join(service.home, 'file')
  writeFileSync(inTheWay, '')
  const { code, stdout, stderr } = await service.run(RUN, {
    env: { RUSHES_STATE_DIR: join(inTheWay, 'state') },
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^http/)
  expect(stderr.match(/will not be remembered/g)).toHaveLength(1)
  expect(stderr.match(/applies to this process alone/g)).toHaveLength(1)
})

it.each(['journal.db', 'limits.db'])(
  'a %s of a newer format is refused, and nothing is sent',
  async (name) => {
    const service = await createCliService()
    await service.run(RUN)
    const sent = service.requests.length
    const database = new Database(join(service.home, 'state', name))
    database.exec('PRAGMA user_version = 99')
    database.close()
    const { code, stderr } = await service.run(RUN)
    expect(code).toBe(2)
    expect(stderr).toMatch(/newer version of rushes/)
    expect(service.requests).toHaveLength(sent)
  },
)

it('a damaged journal is renamed with one warning and replaced, and a damaged ledger is replaced', async () => {
  const service = await createCliService()
  await service.create('-n 3')
  const [journal, ledger] = [statePath(service.home, 'journal.db'), statePath(service.home, 'limits.db')]
  for (const path of [journal, ledger]) truncateSync(path, statSync(path).size - 1_000)
  const bytes = readFileSync(journal)
  const { code, stdout, stderr } = await service.run(`${RUN} --no-wait`)
  expect(code).toBe(0)
  const [, kept = ''] =
    /^warning: The journal .* is damaged\. It was renamed to (.*)\. A new journal was created; earlier runs are not in it\.$/m.exec(
      stderr,
    ) ?? []
  expect(readFileSync(kept)).toEqual(bytes)
  expect(stderr.match(/warning/g)).toHaveLength(1)
  expect(service.rows()).toMatchObject([{ id: stdout.trim() }])
  expect((await service.run('list')).stderr).toBe('')
})

it('a journal that cannot take an id for a moment has it when the command ends', async () => {
  const service = await createCliService()
  let repair: (() => void) | undefined
  const onRequest = (request: HttpRequest) => {
    if (request.method === 'POST') repair = fillJournal(statePath(service.home, 'journal.db'))
  }
  const onStderr = (text: string) => void (text.includes('will not be remembered') && repair?.())
  const stdout = outputOf(await service.run(`${RUN} --no-wait`, { onRequest, onStderr }))
  expect(service.rows()).toMatchObject([{ id: stdout.trim(), phase: 'running' }])
})

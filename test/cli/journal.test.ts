/** What `run` leaves in the journal, whatever becomes of the create. */
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createHome,
  fillJournal,
  ONE_PIXEL_PNG,
  rowsOf,
  scripted,
  temporaryFolder,
  withJournal,
  withoutList,
} from '../support/index.js'
import { stateBytes } from '../support/journal.js'

const RUN = 'run image "a fox"'

/** The files of the newest run. */
const filesOf = (home: string) =>
  withJournal(home, (journal) => journal.list({ limit: 1 }).flatMap((run) => journal.filesOf(run)))

/** Runs the command, and then reads the journal. */
async function runAgainst(fetch: Fetch) {
  const { run, rows } = createHome()
  const { code, stderr } = await run(RUN, { fetch })
  return { code, stderr, rows: rows() }
}

const answering = (status: number, body: unknown): Fetch => scripted({ status, body }).fetch

const failing =
  (sent: boolean): Fetch =>
  async () => {
    throw new HttpFailure('the connection broke', { sent, code: 'ECONNRESET' })
  }

it('a run that goes well enters the journal before its bytes leave, gets its id with the 201, and then its end', async () => {
  const service = await createCliService()
  const atSending: unknown[] = []
  const fetch: Fetch = (request) => {
    if (request.method === 'POST')
      atSending.push(...rowsOf(service.home).map(({ phase, id }) => ({ phase, id })))
    return service.fetch(request)
  }
  const { code, stdout } = await service.run(`${RUN} -o ${temporaryFolder()}/fox.png`, { fetch })
  expect(code).toBe(0)
  expect(atSending).toEqual([{ phase: 'sending', id: undefined }])
  const [row] = rowsOf(service.home)
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

it('a run that goes well keeps each of several, oldest last, under its profile', async () => {
  const service = await createCliService()
  await service.run('config set timeout 30m --profile studio')
  const { stdout } = await service.run(`${RUN} -n 3 --no-wait --profile studio`)
  const rows = rowsOf(service.home)
  expect(rows.map(({ id }) => id)).toEqual(stdout.trim().split('\n').reverse())
  expect(rows.map(({ phase, status, profile }) => [phase, status, profile])).toEqual(
    Array.from({ length: 3 }, () => ['running', 'queued', 'studio']),
  )
})

it.each([
  [400, 'invalid_input', 3],
  [401, 'invalid_api_key', 4],
  [402, 'insufficient_balance', 5],
  [429, 'USAGE_EXCEEDED', 5],
  [429, 'RATE_LIMITED', 7],
  [302, '', 8],
])('a create that was certainly not accepted leaves no row %i %s', async (status, code, exit) => {
  const ran = await runAgainst(answering(status, { error: { code, message: 'no' } }))
  expect(ran).toMatchObject({ code: exit, rows: [] })
})

it('a create that was certainly not accepted leaves no row no connection', async () => {
  expect(await runAgainst(failing(false))).toMatchObject({ code: 9, rows: [] })
})

it('a create that waits out a 429 has one row at each sending', async () => {
  const service = await createCliService()
  const seen: number[] = []
  let turnedAway = 0
  const fetch: Fetch = (request) => {
    if (request.method !== 'POST') return service.fetch(request)
    seen.push(rowsOf(service.home).length)
    return turnedAway++ < 2 ? scripted({ status: 429 }).fetch(request) : service.fetch(request)
  }
  expect((await service.run(RUN, { fetch })).code).toBe(0)
  expect(seen).toEqual([1, 1, 1])
  expect(rowsOf(service.home)).toHaveLength(1)
})

it('a create whose outcome is unknown stays as unconfirmed, with what was sent and what came back, and the message names its key', async () => {
  const { code, stderr, rows } = await runAgainst(answering(500, '<html>oops</html>'))
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

it('a create whose outcome is unknown ends at a second signal while the response is awaited', async () => {
  const { run, rows } = createHome()
  const interrupts = createInterrupts()
  const fetch: Fetch = ({ signal }) =>
    new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
      interrupts.interrupt('SIGINT')
      interrupts.interrupt('SIGINT')
    })
  const { code, stderr } = await run(RUN, { fetch: withoutList(fetch), interrupts })
  expect(code).toBe(130)
  expect(rows()).toMatchObject([{ phase: 'unconfirmed', error: { code: 'interrupted' } }])
  expect(stderr).toMatch(/rushes forget '~[0-9a-f]{4}'/)
})

const statePath = (home: string, name: string) => join(home, 'state', name)
it('a state folder brings one warning when it cannot be written, and the command continues', async () => {
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
  'a state folder of a newer format (%s) is refused, and nothing is sent',
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

it('a state folder with a damaged journal and a damaged ledger is said once, and the journal is kept beside a new one', async () => {
  const service = await createCliService()
  await service.run(`${RUN} -n 3 --no-wait`)
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
  expect(rowsOf(service.home)).toMatchObject([{ id: stdout.trim() }])
  expect((await service.run('list')).stderr).toBe('')
})

it('a state folder whose journal cannot take the id has it when the command ends, where nothing else is written', async () => {
  const service = await createCliService()
  let repair: (() => void) | undefined
  const fetch: Fetch = (request) => {
    if (request.method === 'POST') repair = fillJournal(statePath(service.home, 'journal.db'))
    return service.fetch(request)
  }
  const onStderr = (text: string) => void (text.includes('will not be remembered') && repair?.())
  const { code, stdout } = await service.run(`${RUN} --no-wait`, { fetch, onStderr })
  expect(code).toBe(0)
  expect(rowsOf(service.home)).toMatchObject([{ id: stdout.trim(), phase: 'running' }])
})

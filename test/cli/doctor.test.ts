import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { check, checkDisk } from '../../src/cli/commands/doctor.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { type CliService, createCliService, createHome, runCli, scripted } from '../support/index.js'

interface Line {
  readonly check: string
  readonly status: string
  readonly message: string
  readonly advice: string | null
}

const linesOf = (stdout: string): readonly Line[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const statusesOf = (stdout: string) =>
  Object.fromEntries(linesOf(stdout).map(({ check, status }) => [check, status]))

/** The test's disk may be nearly full, so its checks are left out. */
async function examined(service: CliService, options: Parameters<CliService['run']>[1] = {}) {
  const { code, stdout, stderr } = await service.run('doctor --json', options)
  const { disk: _, ...statuses } = statusesOf(stdout)
  return { code, stderr, statuses, lines: linesOf(stdout) }
}

const WELL = { config: 'ok', address: 'ok', models: 'ok', request: 'ok', key: 'ok', journal: 'ok' }

it('doctor finds all well, asks twice, and makes nothing', async () => {
  const service = await createCliService()
  const { code, stderr, statuses } = await examined(service)
  expect({ code, stderr, statuses }).toEqual({ code: 0, stderr: '', statuses: WELL })
  expect(service.requests.map(({ method, headers }) => [method, 'authorization' in headers])).toEqual([
    ['GET', false],
    ['GET', true],
  ])
  expect(readdirSync(service.home)).not.toContain('config')
})

it('doctor has seven checks, and is green on a machine without a service', async () => {
  const { code, stdout } = await runCli('doctor --json')
  expect(code).toBe(0)
  expect(linesOf(stdout).map(({ check }) => check)).toEqual([
    ...Object.keys(WELL).slice(0, 5),
    'disk',
    'journal',
  ])
  expect(linesOf(stdout)[1]).toMatchObject({
    status: 'ok',
    message: 'no service configured: `--local` works, without key and cost',
  })
  const { request, key, disk: _, ...others } = statusesOf(stdout)
  expect([request, key]).toEqual(['skipped', 'skipped'])
  expect(new Set(Object.values(others))).toEqual(new Set(['ok']))
})

it('doctor prints one line for each check, and its advice below', async () => {
  const { code, stdout } = await runCli('doctor --base-url ftp://x')
  expect(code).toBe(2)
  expect(stdout).toMatch(/^ok {6}config {2}no config file/)
  expect(stdout).toMatch(/^failed {2}address .*ftp.*\n {16}Example: /m)
  expect(stdout).toMatch(/^- {7}key {5}not checked: the address is not valid$/m)
})

it.each<[string, number, string]>([
  ['a wrong key', 401, 'invalid_api_key'],
  ['an account that is not let in', 403, 'ip_not_allowed'],
])('doctor %s fails the check of the key', async (_, status, code) => {
  const service = await createCliService()
  const found = await examined(service, { faults: [`status:${status}:${code}`] })
  expect(found.code).toBe(status === 401 ? 4 : 5)
  expect(found.statuses).toEqual({ ...WELL, key: 'failed' })
})

it('doctor without a key is exit 4, and nothing of one is ever shown', async () => {
  const service = await createCliService()
  const { code, lines } = await examined(service, { env: { RUSHES_API_KEY: '' } })
  expect(code).toBe(4)
  expect(JSON.stringify(lines)).not.toContain(service.apiKey)
})

it('doctor without a network is exit 9, and the key is not checked', async () => {
  const service = await createCliService()
  const fetch: Fetch = async () => {
    throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
  }
  const { code, statuses, lines } = await examined(service, { fetch })
  expect({ code, statuses }).toEqual({
    code: 9,
    statuses: { ...WELL, request: 'failed', key: 'skipped' },
  })
  expect(lines.find(({ check }) => check === 'request')?.advice).toBe(
    'Check the service URL, and that the service is running.',
  )
})

it('doctor names a sandbox where the system forbids connections', async () => {
  const service = await createCliService()
  const fetch: Fetch = async () => {
    throw new HttpFailure('operation not permitted', { sent: false, code: 'EPERM' })
  }
  const { code, lines } = await examined(service, { fetch })
  expect(code).toBe(9)
  expect(lines.find(({ check }) => check === 'request')?.advice).toMatch(
    /^A sandbox .* `--local` needs none\.$/,
  )
})

it('doctor names unfinished runs, and is exit 13 for unconfirmed ones', async () => {
  const service = await createCliService({ rendering: false })
  await service.run('run image "a fox" --no-wait')
  const journalOf = ({ lines }: Awaited<ReturnType<typeof examined>>) =>
    lines.find(({ check }) => check === 'journal')
  expect(journalOf(await examined(service))).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/, 1 unfinished run$/),
    advice: 'Wait for them with `rushes wait --all`.',
  })
  await service.run('run image "a fox"', { fetch: scripted({ status: 500 }).fetch })
  const found = await examined(service)
  expect(found.code).toBe(13)
  expect(journalOf(found)).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(
      /^unconfirmed: ~[0-9a-f]{4} \(rushes\/preview-image, http:\/\/127\.0\.0\.1:1\)$/,
    ),
    advice: expect.stringMatching(/rushes forget '~[0-9a-f]{4}' --yes`\.$/),
  })
})

it('doctor reports a damaged journal and leaves it where it is', async () => {
  const service = await createCliService()
  const state = join(service.home, 'state')
  mkdirSync(state, { mode: 0o700 })
  writeFileSync(join(state, 'journal.db'), 'no database at all'.repeat(500))
  expect(await examined(service)).toMatchObject({ code: 8, statuses: { journal: 'failed' } })
  expect(readdirSync(state).filter((name) => name.includes('damaged'))).toEqual([])
})

it('doctor refuses a journal of a newer format', async () => {
  const service = await createCliService()
  await service.run('run image "a fox"')
  const database = new Database(join(service.home, 'state', 'journal.db'))
  database.exec('PRAGMA user_version = 99')
  database.close()
  expect(await examined(service)).toMatchObject({ code: 2, statuses: { journal: 'failed' } })
})

it('doctor says that the config file cannot be read, and still checks this machine', async () => {
  const { home, run } = createHome()
  mkdirSync(join(home, 'config'))
  writeFileSync(join(home, 'config', 'config.json'), '{ not json')
  const { code, stdout } = await run('doctor --json')
  expect(code).toBe(2)
  expect(statusesOf(stdout)).toMatchObject({
    config: 'failed',
    ...{ address: 'skipped', models: 'skipped', request: 'skipped', key: 'skipped' },
    journal: 'ok',
  })
})

const lineOf = (lines: readonly Line[]) => lines.find(({ check }) => check === 'models')

it('the models bring a warning with the ways to set them when they are not set', async () => {
  const service = await createCliService()
  const { code, lines } = await examined(service, { env: { RUSHES_IMAGE_MODEL: '' } })
  expect(code).toBe(0)
  expect(lineOf(lines)).toEqual({
    check: 'models',
    status: 'warning',
    message: 'image: not set',
    advice:
      'Set RUSHES_IMAGE_MODEL or run `rushes config set models.image <provider/name>`; or add --model to each `rushes run image`.',
  })
})

it('the models of another form than provider/name fail the check', async () => {
  const service = await createCliService()
  const { code, statuses } = await examined(service, { env: { RUSHES_VIDEO_MODEL: 'cinema' } })
  expect({ code, statuses }).toEqual({ code: 2, statuses: { ...WELL, models: 'failed' } })
})

it.each([
  [500 * 1024 ** 2, 'ok', undefined],
  [50 * 1024 ** 2, 'failed', 12],
])('a disk with %i bytes free is %s', async (bytes, status, exitCode) => {
  expect(await check('disk', () => checkDisk('.', () => bytes))).toMatchObject({
    status,
    ...(exitCode && { exitCode }),
  })
})

it('a disk whose free space cannot be read is a warning', async () => {
  const unreadable = () => {
    throw Object.assign(new Error('EACCES'), { code: 'EACCES', errno: -13, syscall: 'statfs' })
  }
  expect(await check('disk', () => checkDisk('out', unreadable))).toEqual({
    check: 'disk',
    status: 'warning',
    message: 'the free space could not be read: out: permission denied',
    advice: undefined,
  })
})

it('two full disks get one advice', async () => {
  const full = (path: string) => () => checkDisk(path, () => 0)
  expect((await check('disk', full('.'), full('state'))).advice).toBe(
    'Free some space, or download to another disk with -o.',
  )
})

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { checkDisk } from '../../src/cli/commands/doctor.js'
import { HttpFailure } from '../../src/host/http.js'
import {
  createCliService,
  createHome,
  type Home,
  objects,
  type RunAtService,
  runCli,
  scripted,
} from '../support/index.js'

interface Line {
  readonly check: string
  readonly status: string
  readonly message: string
  readonly advice: string | null
}

/** Without the check of the disk, which may be nearly full. */
async function examined({ run }: Pick<Home, 'run'>, options: RunAtService = {}) {
  const { code, stdout, stderr } = await run('doctor --json', options)
  const checks: readonly Line[] = objects(stdout).filter(({ check }) => check !== 'disk')
  const statuses = Object.fromEntries(checks.map(({ check, status }) => [check, status]))
  const lineOf = (name: string) => checks.find(({ check }) => check === name)
  return { code, stdout, stderr, statuses, lineOf }
}

const WELL = { config: 'ok', address: 'ok', models: 'ok', request: 'ok', key: 'ok', journal: 'ok' }

it('doctor sends two requests, one of them with the key, which it does not print, and creates no folder', async () => {
  const service = await createCliService()
  const { code, stdout, stderr, statuses } = await examined(service)
  expect(stdout).not.toContain(service.apiKey)
  expect({ code, stderr, statuses }).toEqual({ code: 0, stderr: '', statuses: WELL })
  expect(service.requests.map(({ method, headers }) => [method, 'authorization' in headers])).toEqual([
    ['GET', false],
    ['GET', true],
  ])
  expect(readdirSync(service.home)).not.toContain('config')
})

it('doctor without a service has seven checks, and ends with exit 0', async () => {
  const home = createHome({ env: {} })
  const { code, stdout, statuses, lineOf } = await examined(home)
  expect(code).toBe(0)
  const { request, key, ...others } = WELL
  expect(statuses).toEqual({ ...others, request: 'skipped', key: 'skipped' })
  expect(objects(stdout).map(({ check }) => check)).toEqual([
    ...['config', 'address', 'models', 'request', 'key', 'disk', 'journal'],
  ])
  expect([request, key, lineOf('address')?.message]).toEqual([
    ...['ok', 'ok', 'no service configured: `--local` works, without key and cost'],
  ])
})

it('doctor fails the check of the config for a value that no command can use', async () => {
  const { stdout } = await runCli('doctor', { env: { RUSHES_TIMEOUT: '5x' } })
  expect(stdout).toMatch(/^failed +config .*RUSHES_TIMEOUT.*"5x"/m)
})

it('doctor names the variables that are set, without their values', async () => {
  const { stdout } = await runCli('doctor', {
    env: { RUSHES_IMAGE_MODEL: 'acme/still-1', RUSHES_API_KEY: 'rk_secret' },
  })
  expect(stdout).toMatch(/^ok +config .*, RUSHES_IMAGE_MODEL, RUSHES_API_KEY\n/m)
  expect(stdout).not.toContain('rk_secret')
})

it('doctor prints one line for each check, and its advice below', async () => {
  const { code, stdout } = await runCli('doctor --base-url ftp://x')
  expect(code).toBe(2)
  expect(stdout).toMatch(/^ok {6}config {2}no config file/)
  expect(stdout).toMatch(/^failed {2}address .*ftp.*\n {16}Examples: /m)
  expect(stdout).toMatch(/^- {7}key {5}not checked: the address is not valid$/m)
})

it('doctor fails the check of a key that is not set or that the service refuses', async () => {
  const service = await createCliService()
  const exits: readonly (readonly [RunAtService, number])[] = [
    [{ faults: ['status:401:invalid_api_key'] }, 4],
    [{ faults: ['status:403:ip_not_allowed'] }, 5],
    [{ env: { RUSHES_API_KEY: '' } }, 4],
  ]
  for (const [options, exit] of exits) {
    const { code, statuses } = await examined(service, options)
    expect([code, statuses]).toEqual([exit, { ...WELL, key: 'failed' }])
  }
})

it.each([
  [
    'a service that refuses connections',
    'ECONNREFUSED',
    /^Check the service URL, and that the service is running\.$/,
  ],
  ['a system that forbids connections', 'EPERM', /^A sandbox .* `--local` needs none\.$/],
])('doctor ends with exit 9 for %s, gives advice, and does not check the key', async (_, code, advice) => {
  const { fetch } = scripted(new HttpFailure('no connection', { sent: false, code }))
  const found = await examined(await createCliService(), { fetch })
  expect([found.code, found.statuses]).toEqual([9, { ...WELL, request: 'failed', key: 'skipped' }])
  expect(found.lineOf('request')?.advice).toMatch(advice)
})

it('doctor ends with exit 13 for unconfirmed runs', async () => {
  const service = await createCliService({ rendering: false })
  await service.run('run image "a fox"', { faults: ['create:500'] })
  const found = await examined(service)
  expect(found.code).toBe(13)
  expect(found.lineOf('journal')).toMatchObject({
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
  mkdirSync(state, { mode: 0o700, recursive: true })
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

it('doctor names a config file that cannot be read, and still checks this machine', async () => {
  const { code, statuses } = await examined(createHome({ config: '{ not json' }))
  expect([code, statuses]).toEqual([
    2,
    {
      config: 'failed',
      address: 'skipped',
      models: 'skipped',
      request: 'skipped',
      key: 'skipped',
      journal: 'ok',
    },
  ])
})

it('doctor warns of a model that is not set, with the ways to set it, and fails the check of one that is not provider/name', async () => {
  const service = await createCliService()
  const { code, lineOf } = await examined(service, { env: { RUSHES_IMAGE_MODEL: '' } })
  expect(code).toBe(0)
  expect(lineOf('models')).toEqual({
    check: 'models',
    status: 'warning',
    message: 'not set: image',
    advice: 'Set RUSHES_IMAGE_MODEL or run `rushes config set models.image <provider/name>`; or add --model.',
  })
  const wrong = await examined(service, { env: { RUSHES_VIDEO_MODEL: 'cinema' } })
  expect([wrong.code, wrong.statuses]).toEqual([2, { ...WELL, models: 'failed' }])
})

it('the check of a disk with 50 MiB free fails with exit 12', () => {
  const check = (mib: number | undefined) => checkDisk(['.'], () => mib && mib * 1024 ** 2)
  expect(check(500)).toMatchObject({ status: 'ok', message: '500.0 MiB free in .' })
  expect(check(undefined)).toMatchObject({ status: 'ok', message: 'the free space of . is not known' })
  expect(() => check(50)).toThrow(expect.objectContaining({ exitCode: 12, message: '50.0 MiB free in .' }))
})

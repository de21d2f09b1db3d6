import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createHome,
  LOOPBACK_URL,
  outputOf,
  type RunOptions,
  runCli,
  SET,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'
import { processExists } from '../support/process-exists.js'

const NO_KEY = { ...SET, RUSHES_API_KEY: '' }
const configPath = (home: string) => join(home, 'config', 'config.json')

it('login stores a key that the service accepts, privately, with the address it was given', async () => {
  const service = await createCliService({ hasList: true })
  const env = { RUSHES_API_KEY: '', RUSHES_BASE_URL: '' }
  const ran = await service.run(`login --base-url ${LOOPBACK_URL}`, {
    env,
    stdin: `${service.apiKey}\n`,
  })
  expect(ran).toMatchObject({ code: 0, stdout: '' })
  expect(ran.stderr).not.toContain(service.apiKey)
  const file = configPath(service.home)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(join(service.home, 'config')).mode & 0o777).toBe(0o700)
  expect(readFileSync(file, 'utf8')).toContain(service.apiKey)
  outputOf(await service.run('run image fox', { env }))
  const listed = await service.run('config list', { env })
  const models = 'models.video=rushes/preview-video\nmodels.image=rushes/preview-image\n'
  expect(listed.stdout).toBe(`baseUrl=${LOOPBACK_URL}\n${models}`)
  const loggedOut = await service.run('logout', { env })
  expect(loggedOut).toMatchObject({ code: 0, stdout: '' })
  expect(loggedOut.stderr).toMatch(/It still works at the service: to revoke it, disable it/)
  expect((await service.run('run image fox', { env })).code).toBe(4)
})

it.each<[string, RunOptions]>([
  ['without a terminal', { stdin: 'rk_mine\n' }],
  ['on a terminal where none is typed', { stdin: '\n', tty: { stdin: true, stderr: true } }],
])('login needs the URL of the service, %s', async (_, options) => {
  expect(usageErrorOf(await runCli('login', { env: {}, ...options }))).toContain(
    'error: Not set: service URL.\n  Give the URL of the service: `rushes login --base-url <url>`.\n',
  )
})

it('login at a port that refuses says at once that it tries again, and ends with exit 9 and the address', async () => {
  const refused = new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
  const { run } = createHome({ env: NO_KEY, answers: [refused] })
  const { code, stderr } = await run('login', { stdin: 'rk_mine\n' })
  expect(code).toBe(9)
  expect(stderr).toMatch(
    /^Checking the API key at http:\/\/127\.0\.0\.1:1\. Without an answer, it is tried again/,
  )
  expect(stderr).toMatch(/\nerror: .*127\.0\.0\.1:1.* The API key was not stored\./)
})

it('login does not store a refused key, unless --no-verify is given', async () => {
  const service = await createCliService()
  const env = { RUSHES_API_KEY: '' }
  expect((await service.run('login', { env, stdin: 'rk_wrong' })).code).toBe(4)
  expect((await service.run('status x', { env })).code).toBe(4)
  outputOf(await service.run('login --no-verify', { env, stdin: 'rk_wrong' }))
})

it('login refuses a key without an end, and an empty one', async () => {
  const { run } = createHome({ env: NO_KEY })
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(65_536, 'x')
    })(),
  )
  const refused = await run('login --no-verify', { stdin: endless })
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('more than 16384 characters') })
  const empty = await run('login --no-verify', { stdin: '\n' })
  expect(usageErrorOf(empty)).toContain('Standard input is empty')
})

it('logout removes the key, and says that it works at the service', async () => {
  const { run } = createHome({ env: NO_KEY })
  await run('login --no-verify', { stdin: 'rk_mine\r\n' })
  expect((await run('logout')).stderr).toContain('It still works at the service')
  expect((await run('logout')).stderr).toContain('has no stored API key')
})

it('a stored key is sent to its own origin alone, and the error for another one names both', async () => {
  const { run } = createHome({ env: NO_KEY })
  await run('login --no-verify', { stdin: 'rk_mine' })
  const { code, stderr } = await run('status x --base-url https://other.example')
  expect(code).toBe(4)
  expect(stderr).toContain(LOOPBACK_URL)
  expect(stderr).toContain('rushes login --profile <name> --base-url https://other.example')
  expect(stderr).not.toContain('rk_mine')
})

const REMOTE = SET.RUSHES_IMAGE_MODEL
const LOCAL = 'rushes/preview-image'

it.each([
  ['RUSHES_LOCAL', { RUSHES_LOCAL: '1' }, undefined, '', LOCAL],
  ['an empty RUSHES_LOCAL, which counts as unset', { RUSHES_LOCAL: '' }, undefined, '', REMOTE],
  ['the profile', {}, true, '', LOCAL],
  ['RUSHES_LOCAL before the profile', { RUSHES_LOCAL: '0' }, true, '', REMOTE],
  ['RUSHES_BASE_URL before the profile', { RUSHES_BASE_URL: LOOPBACK_URL }, true, '', REMOTE],
  ['--base-url before both', { RUSHES_LOCAL: '1' }, true, `--base-url ${LOOPBACK_URL}`, REMOTE],
])('a command is local by %s', async (_name, env, local, flags, model) => {
  const { run } = createHome({ config: { local }, env: { ...SET, RUSHES_BASE_URL: '', ...env } })
  expect(JSON.parse(outputOf(await run(`run image fox --dry-run ${flags}`))).model).toBe(model)
})

it('another value of RUSHES_LOCAL is a usage error, but not for a command that does not use it', async () => {
  const used = await runCli('run image fox --dry-run', { env: { ...SET, RUSHES_LOCAL: 'maybe' } })
  expect(usageErrorOf(used)).toContain('RUSHES_LOCAL: "maybe"')
  const unused = await runCli('admin account create x', { env: { ...SET, RUSHES_LOCAL: '1' } })
  expect(unused.code).toBe(0)
})

/** Requests a status with the key of this environment. */
async function authorization(
  env: Readonly<Record<string, string>>,
  options: RunOptions & { config?: object } = {},
) {
  const { run, requests } = createHome({
    answers: [{ status: 200, body: { status: 'going' } }],
    ...options,
    env: { ...NO_KEY, ...env },
  })
  const ran = await run('status x')
  return { ...ran, sent: requests[0]?.headers.authorization }
}

function keyFile(content: string | Buffer): string {
  const path = join(temporaryFolder(), 'key')
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

it('the key comes from a variable, a file, a command or the command of the config file, in this order', async () => {
  const all = {
    RUSHES_API_KEY: 'rk_env',
    RUSHES_API_KEY_FILE: keyFile('rk_file\nmore\n'),
    RUSHES_API_KEY_COMMAND: 'printf "rk_command\\nmore"',
  }
  const { RUSHES_API_KEY: _, ...twoLeft } = all
  const { RUSHES_API_KEY_FILE: path, ...oneLeft } = twoLeft
  for (const [env, key] of [
    [all, 'rk_env'],
    [twoLeft, 'rk_file'],
    [oneLeft, 'rk_command'],
    [{}, 'rk_config'],
  ] as const) {
    const ran = await authorization(env, { config: { apiKeyCommand: 'printf rk_config' } })
    expect(ran).toMatchObject({ code: 0, stderr: '', sent: `Bearer ${key}` })
  }
  chmodSync(path, 0o644)
  expect((await authorization(twoLeft)).stderr).toContain('Other users can read the key file')
})

it('the key comes from a file with a byte order mark and \\r\\n', async () => {
  const path = keyFile(Buffer.from('\ufeff\r\nrk_file\r\nmore\r\n'))
  expect((await authorization({ RUSHES_API_KEY_FILE: path })).sent).toBe('Bearer rk_file')
})

it.each<Record<string, string>>([
  { RUSHES_API_KEY_FILE: '/no/such/file' },
  { RUSHES_API_KEY_COMMAND: 'read line && echo rk_typed' },
  { RUSHES_API_KEY_COMMAND: 'yes x | tr -d "\\n" | head -c 9000000' },
  { RUSHES_API_KEY_FILE: '/dev/zero' },
])('a key that cannot be read ends a command with exit 4: %j', async (env) => {
  const { code, sent, stderr } = await authorization(env)
  expect({ code, sent }).toEqual({ code: 4, sent: undefined })
  expect(stderr).toMatch(/^error: .*\n {2}\S/)
})

it('a key that no HTTP header can carry ends a command with exit 4', async () => {
  const { stderr, code } = await runCli('status x', {
    env: { ...SET, RUSHES_API_KEY: 'x'.repeat(16_385) },
  })
  expect(code).toBe(4)
  expect(stderr).toMatch(/^error: The API key from RUSHES_API_KEY has more than 16384 characters/)
})

describe('a key that takes its time', () => {
  /** Of a file that the command has written its process id to. */
  const isRunning = (pidFile: string) => processExists(Number(readFileSync(pidFile, 'utf8')))
  const began = (pidFile: string) =>
    expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8')).toMatch(/^\d+\n$/)
  const makePipe = () => {
    const pipe = join(temporaryFolder(), 'key')
    spawnSync('mkfifo', ['-m', '600', pipe])
    return pipe
  }

  it('may come through a pipe, which may stay open after its line', async () => {
    const pipe = makePipe()
    const asked = authorization({ RUSHES_API_KEY_FILE: pipe })
    const writer = spawn('sh', [
      '-c',
      'exec 1> "$0"; printf rk_; sleep 0.05; echo pipe; exec sleep 300',
      pipe,
    ])
    expect(await asked).toMatchObject({ code: 0, sent: 'Bearer rk_pipe', stderr: '' })
    writer.kill()
  })

  it('is given up at a signal while its pipe has no writer', async () => {
    const interrupts = createInterrupts()
    const asked = authorization({ RUSHES_API_KEY_FILE: makePipe() }, { interrupts })
    setImmediate(() => interrupts.interrupt('SIGINT'))
    expect(await asked).toMatchObject({ code: 130, sent: undefined })
  })

  it('may come from a command that leaves a process behind, which is ended', async () => {
    const pid = join(temporaryFolder(), 'pid')
    const command = `sleep 300 & echo $! > '${pid}'; echo rk_left; echo more`
    expect((await authorization({ RUSHES_API_KEY_COMMAND: command })).sent).toBe('Bearer rk_left')
    await expect.poll(() => isRunning(pid)).toBe(false)
  })

  it('is given up at a signal, which ends all processes of its command, also those that ignore SIGTERM', async () => {
    const pid = join(temporaryFolder(), 'pid')
    const interrupts = createInterrupts()
    const command = `trap '' TERM; sleep 300 & echo $! > '${pid}'; wait`
    const asked = authorization({ RUSHES_API_KEY_COMMAND: command }, { interrupts })
    await began(pid)
    interrupts.interrupt('SIGINT')
    expect(await asked).toMatchObject({ code: 130, sent: undefined })
    await expect.poll(() => isRunning(pid)).toBe(false)
  })

  it('whose command fails ends with an error, as JSON with --json', async () => {
    const env = { ...NO_KEY, RUSHES_API_KEY_COMMAND: 'echo locked >&2; echo more >&2; exit 3' }
    const { code, stderr } = await runCli('status x --json', { env })
    expect(code).toBe(4)
    expect(JSON.parse(stderr).error.message).toMatch(/^The command .* failed with exit code 3\.$/)
  })
})

it('config sets, gets, lists and unsets the settings of one profile', async () => {
  const { home, run } = createHome({ env: {} })
  const config = (line = '') => run(`config ${line}`)
  outputOf(await config('set models.video acme/cinema-1'))
  outputOf(await config('set timeout 5m --profile work'))
  expect(await config('list')).toMatchObject({
    stdout: 'models.video=acme/cinema-1\n',
    stderr: '',
  })
  expect(await config()).toEqual(await config('list'))
  expect(outputOf(await config('list --profile work --json'))).toBe('{"timeout":"5m"}\n')
  expect(outputOf(await config('get models.video'))).toBe('acme/cinema-1\n')
  outputOf(await config('unset models.video'))
  usageErrorOf(await config('get models.video'))
  await config('set baseUrl https://a.example/api/v1')
  expect(outputOf(await config('get baseUrl'))).toBe('https://a.example\n')
  expect(outputOf(await config('path'))).toBe(`${configPath(home)}\n`)
})

it.each([
  ['set apiKey rk_x', /login/],
  ['get apiKey', /not a setting[\s\S]*rushes logout/],
  ['set timeout soon', /not a valid duration/],
  ['set baseUrl http://example.com', /plain http/],
  ['set baseUrl https://u:rk_x@a:99999/b?key=rk_x', /"https:\/\/…@a:99999\/b\?…" is not a valid service URL/],
  ['set baseUrl u:rk_x@a.example', /"…@a\.example" is not a valid service URL/],
  ['set models.video cinema', /provider/],
  ['set currency "US dollars"', /currency/],
  ['set maxCost 12,50', /not an amount/],
  ['set maxCostPerDay "20 USD"', /not an amount/],
  ['set maxCostPerDay 20 --profile ""', /--profile has no value/],
])('config %s is a usage error', async (line, message) => {
  expect(usageErrorOf(await runCli(`config ${line}`))).toMatch(message)
})

it.each(['{ broken', '[{"timeout":"5m"}]', '{"profiles":[1]}', '{"profiles":{"default":[1]}}'])(
  'a config file that cannot be read is a usage error, and is not changed: %s',
  async (config) => {
    const { home, run } = createHome({ config, env: NO_KEY, stdin: 'rk_x' })
    const message = `Cannot read the config file ${configPath(home)}`
    for (const line of ['config set timeout 6m', 'login --no-verify', 'status x'])
      expect(usageErrorOf(await run(line))).toContain(message)
    expect(readFileSync(configPath(home), 'utf8')).toBe(config)
  },
)

it.each(['{"apiKey":rk_hand}', '{"profiles":{"default":{"apiKey":{"value":\'rk_hand\'}}}}', 'rk_hand'])(
  'a key in a config file that is not valid JSON is not printed: %s',
  async (config) => {
    const { run } = createHome({ config, env: NO_KEY })
    expect(usageErrorOf(await run('status x'))).not.toContain('rk_h')
  },
)

it.each(['{"apiKey":"rk_hand"}', '{"profiles":{"default":{"apiKey":"rk_hand"}}}'])(
  'a key that was written into the config file by hand is not used and not printed: %s',
  async (config) => {
    const { run } = createHome({ config, env: NO_KEY })
    const { code, stderr } = await run('status x')
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.not.stringContaining('rk_hand') })
    expect(outputOf(await run('config list'))).not.toContain('rk_hand')
  },
)

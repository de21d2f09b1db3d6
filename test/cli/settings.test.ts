import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createHome,
  LOOPBACK_URL,
  type RunOptions,
  runCli,
  SET,
  scripted,
  temporaryFolder,
} from '../support/index.js'
import { processExists } from '../support/process-exists.js'

const NO_KEY = { ...SET, RUSHES_API_KEY: '' }

it('login stores a key that the service accepts, privately, with the address it was given', async () => {
  const service = await createCliService({ hasList: true })
  const env = { RUSHES_API_KEY: '', RUSHES_BASE_URL: '' }
  const ran = await service.run(`login --base-url ${LOOPBACK_URL}`, {
    env,
    stdin: `${service.apiKey}\n`,
  })
  expect(ran).toMatchObject({ code: 0, stdout: '' })
  expect(ran.stderr).not.toContain(service.apiKey)
  const file = join(service.home, 'config', 'config.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(join(service.home, 'config')).mode & 0o777).toBe(0o700)
  expect(readFileSync(file, 'utf8')).toContain(service.apiKey)
  expect((await service.run('run image fox', { env })).code).toBe(0)
  const listed = await service.run('config list', { env })
  const models = 'models.video=rushes/preview-video\nmodels.image=rushes/preview-image\n'
  expect(listed.stdout).toBe(`baseUrl=${LOOPBACK_URL}\n${models}`)
  const loggedOut = await service.run('logout', { env })
  expect(loggedOut).toMatchObject({ code: 0, stdout: '' })
  expect(loggedOut.stderr).toMatch(/It still works at the service: to revoke it, disable it/)
  expect((await service.run('run image fox', { env })).code).toBe(4)
})

it('login needs the URL of the service without a terminal, and with one that gives none', async () => {
  const env = { RUSHES_API_KEY: '', RUSHES_BASE_URL: '' }
  const missing =
    'error: Not set: service URL.\n  Give the URL of the service: `rushes login --base-url <url>`.\n'
  const piped = await runCli('login', { env, stdin: 'rk_mine\n' })
  expect(piped).toMatchObject({ code: 2, stdout: '', stderr: missing })
  const typed = await runCli('login', { env, stdin: '\n', tty: { stdin: true, stderr: true } })
  expect(typed).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(missing) })
})

it('login at a port that refuses says at once what it tries again, and is exit 9 with the address', async () => {
  const refused = async () => {
    throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
  }
  const { code, stderr } = await runCli('login', { env: NO_KEY, stdin: 'rk_mine\n', fetch: refused })
  expect(code).toBe(9)
  expect(stderr).toMatch(
    /^Checking the API key at http:\/\/127\.0\.0\.1:1\. Without an answer, it is tried again/,
  )
  expect(stderr).toMatch(/\nerror: .*127\.0\.0\.1:1.* The API key was not stored\./)
})

it('login does not store a key that is refused, unless told to', async () => {
  const service = await createCliService()
  const env = { RUSHES_API_KEY: '' }
  expect((await service.run('login', { env, stdin: 'rk_wrong' })).code).toBe(4)
  expect((await service.run('status x', { env })).code).toBe(4)
  expect((await service.run('login --no-verify', { env, stdin: 'rk_wrong' })).code).toBe(0)
})

it('login reads one line of standard input, however much there is', async () => {
  const { run } = createHome({ env: NO_KEY })
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(65_536, 'x')
    })(),
  )
  const refused = await run('login --no-verify', { stdin: endless })
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('more than 16384 characters') })
  const empty = await run('login --no-verify', { stdin: '\n' })
  expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('Standard input is empty') })
})

it('login can be undone by logout, which names a key that is still in use', async () => {
  const { run } = createHome({ env: NO_KEY })
  await run('login --no-verify', { stdin: 'rk_mine\r\n' })
  const { stderr } = await run('logout', { env: SET })
  expect(stderr).toContain('Commands still use the key of RUSHES_API_KEY, which is set.')
  expect((await run('logout')).stderr).toContain('has no stored API key')
})

it('login sends a stored key to its own origin alone, and names both', async () => {
  const { run } = createHome({ env: NO_KEY })
  await run('login --no-verify', { stdin: 'rk_mine' })
  const { code, stderr } = await run('status x --base-url https://other.example')
  expect(code).toBe(4)
  expect(stderr).toContain(LOOPBACK_URL)
  expect(stderr).toContain('rushes login --profile <name> --base-url https://other.example')
  expect(stderr).not.toContain('rk_mine')
})

const LOCAL = 'rushes/preview-image'
const modelOf = async (env: Record<string, string>, local?: unknown, flags: readonly string[] = []) => {
  const home = temporaryFolder()
  mkdirSync(join(home, 'config'))
  writeFileSync(join(home, 'config', 'config.json'), JSON.stringify({ profiles: { default: { local } } }))
  const { code, stdout, stderr } = await runCli(['run', 'image', 'fox', '--dry-run', ...flags], {
    home,
    env: { ...SET, RUSHES_BASE_URL: '', ...env },
  })
  return code === 0 ? JSON.parse(stdout).model : `${code}: ${stderr}`
}
const REMOTE = SET.RUSHES_IMAGE_MODEL

it.each([
  ['the variable', { RUSHES_LOCAL: '1' }, undefined, LOCAL],
  ['an empty variable', { RUSHES_LOCAL: '' }, undefined, REMOTE],
  ['the profile', {}, true, LOCAL],
  ['the variable over the profile', { RUSHES_LOCAL: '0' }, true, REMOTE],
  ['the address of the environment over the profile', { RUSHES_BASE_URL: LOOPBACK_URL }, true, REMOTE],
])('local as a setting %s', async (_name, env, local, model) => {
  expect(await modelOf(env, local)).toBe(model)
})

it('local as a setting gives way to --base-url', async () => {
  expect(await modelOf({ RUSHES_LOCAL: '1' }, true, ['--base-url', LOOPBACK_URL])).toBe(REMOTE)
})

it('local as a setting ends with exit 2 for another value', async () => {
  expect(await modelOf({ RUSHES_LOCAL: 'maybe' })).toMatch(/^2: .*RUSHES_LOCAL: "maybe"/)
})

it('local as a setting does not concern commands that have no use for it', async () => {
  const { code } = await runCli('admin account create x', {
    env: { ...SET, RUSHES_LOCAL: '1' },
  })
  expect(code).toBe(0)
})

const good = { status: 200, body: { status: 'going' } }
const authorization = async (env: Record<string, string>, home = temporaryFolder()) => {
  const { fetch, requests } = scripted(good)
  const ran = await runCli('status x', { home, env: { ...NO_KEY, ...env }, fetch })
  return { ...ran, sent: requests[0]?.headers.authorization }
}

it('the key comes from a variable, a file or a command, in this order', async () => {
  const file = join(temporaryFolder(), 'key')
  writeFileSync(file, 'rk_file\nmore\n', { mode: 0o600 })
  const command = { RUSHES_API_KEY_COMMAND: 'printf "rk_command\\nmore"' }
  expect(await authorization(command)).toMatchObject({ sent: 'Bearer rk_command', code: 0 })
  expect(await authorization({ ...command, RUSHES_API_KEY_FILE: file })).toMatchObject({
    sent: 'Bearer rk_file',
    stderr: '',
  })
  expect(
    await authorization({ ...command, RUSHES_API_KEY_FILE: file, RUSHES_API_KEY: 'rk_env' }),
  ).toMatchObject({ sent: 'Bearer rk_env' })
  chmodSync(file, 0o644)
  expect((await authorization({ RUSHES_API_KEY_FILE: file })).stderr).toContain(
    'Other users can read the key file',
  )
})

it.each(['\r\nrk_file\r\nmore\r\n'])(
  'the key comes from a file in UTF-16 with %j, as PowerShell 5 writes it, and from one with a byte order mark',
  async (text) => {
    for (const encoding of ['utf16le', 'utf8'] as const) {
      const file = join(temporaryFolder(), 'key')
      writeFileSync(file, Buffer.from(`\ufeff${text}`, encoding), { mode: 0o600 })
      expect(await authorization({ RUSHES_API_KEY_FILE: file })).toMatchObject({ sent: 'Bearer rk_file' })
    }
  },
)

it('the key comes from the command of the config file only where the environment has none', async () => {
  const { home, run } = createHome({ env: {} })
  await run('config set apiKeyCommand "printf rk_config"')
  expect(await authorization({}, home)).toMatchObject({ sent: 'Bearer rk_config' })
  expect(await authorization({ RUSHES_API_KEY_COMMAND: 'printf rk_env' }, home)).toMatchObject({
    sent: 'Bearer rk_env',
  })
})

it.each([
  [{ RUSHES_API_KEY_FILE: '/no/such/file' }],
  [{ RUSHES_API_KEY_COMMAND: 'read line && echo rk_typed' }],
  [{ RUSHES_API_KEY_COMMAND: 'yes x | tr -d "\\n" | head -c 9000000' }],
  [{ RUSHES_API_KEY_FILE: '/dev/zero' }],
])('the key that cannot be had is exit 4: %j', async (env) => {
  expect(await authorization(env as Record<string, string>)).toMatchObject({ code: 4, sent: undefined })
})

it('a key that no HTTP header can carry is exit 4', async () => {
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
  const good = { status: 200, body: { status: 'going' } }
  const ask = (env: Record<string, string>, options: RunOptions = {}) => {
    const { fetch, requests } = scripted(good)
    const running = runCli('status x', { ...options, env: { ...NO_KEY, ...env }, fetch })
    return running.then((ran) => ({ ...ran, sent: requests[0]?.headers.authorization }))
  }
  const makePipe = () => {
    const pipe = join(temporaryFolder(), 'key')
    spawnSync('mkfifo', ['-m', '600', pipe])
    return pipe
  }

  it('comes through a pipe, which may stay open after its line', async () => {
    const pipe = makePipe()
    const asked = ask({ RUSHES_API_KEY_FILE: pipe })
    const writer = spawn('sh', [
      '-c',
      'exec 1> "$0"; printf rk_; sleep 0.05; echo pipe; exec sleep 300',
      pipe,
    ])
    expect(await asked).toMatchObject({ code: 0, sent: 'Bearer rk_pipe', stderr: '' })
    writer.kill()
  })

  it('ends at a signal while a pipe has no writer', async () => {
    const interrupts = createInterrupts()
    const asked = ask({ RUSHES_API_KEY_FILE: makePipe() }, { interrupts })
    setImmediate(() => interrupts.interrupt('SIGINT'))
    expect(await asked).toMatchObject({ code: 130, sent: undefined })
  })

  it('comes from a command that leaves a process behind, which is ended', async () => {
    const pid = join(temporaryFolder(), 'pid')
    const command = `sleep 300 & echo $! > '${pid}'; echo rk_left; echo more`
    expect(await ask({ RUSHES_API_KEY_COMMAND: command })).toMatchObject({ sent: 'Bearer rk_left' })
    await expect.poll(() => isRunning(pid)).toBe(false)
  })

  it('from a command ends with all its processes after a signal, also where they ignore SIGTERM', async () => {
    const pid = join(temporaryFolder(), 'pid')
    const interrupts = createInterrupts()
    const command = `trap '' TERM; sleep 300 & echo $! > '${pid}'; wait`
    const asked = ask({ RUSHES_API_KEY_COMMAND: command }, { interrupts })
    await began(pid)
    interrupts.interrupt('SIGINT')
    expect(await asked).toMatchObject({ code: 130, sent: undefined })
    await expect.poll(() => isRunning(pid)).toBe(false)
  })

  it('says with --json why the command failed, and nothing but JSON', async () => {
    const env = { ...NO_KEY, RUSHES_API_KEY_COMMAND: 'echo locked >&2; echo more >&2; exit 3' }
    const { code, stderr } = await runCli('status x --json', { env })
    expect(code).toBe(4)
    expect(JSON.parse(stderr).error.message).toMatch(/^The command .* failed with exit code 3: locked$/)
  })
})

it('config sets, gets, lists and unsets, a profile apart from the others', async () => {
  const { home, run } = createHome({ env: {} })
  const config = (line = '') => run(`config ${line}`)
  expect((await config('set models.video acme/cinema-1')).code).toBe(0)
  expect((await config('set timeout 5m --profile work')).code).toBe(0)
  expect(await config('list')).toMatchObject({
    stdout: 'models.video=acme/cinema-1\n',
    stderr: 'Profile: default. Others: work.\n',
  })
  expect(await config()).toEqual(await config('list'))
  expect((await config('list --profile work --json')).stdout).toBe('{"timeout":"5m"}\n')
  expect((await config('get models.video')).stdout).toBe('acme/cinema-1\n')
  expect((await config('unset models.video')).code).toBe(0)
  expect((await config('get models.video')).code).toBe(2)
  await config('set baseUrl https://a.example/api/v1')
  expect((await config('get baseUrl')).stdout).toBe('https://a.example\n')
  expect((await config('path')).stdout).toBe(`${join(home, 'config', 'config.json')}\n`)
})

it.each([
  [['set', 'apiKey', 'rk_x'], /login/],
  [['get', 'apiKey'], /not a setting[\s\S]*rushes logout/],
  [['set', 'timeout', 'soon'], /not a valid duration/],
  [['set', 'baseUrl', 'http://example.com'], /plain http/],
  [['set', 'models.video', 'cinema'], /provider/],
])('config %j is refused', async (argv, message) => {
  const { code, stderr } = await runCli(['config', ...argv])
  expect(code).toBe(2)
  expect(stderr).toMatch(message)
})

const homeWith = (text: string) => {
  const home = temporaryFolder()
  mkdirSync(join(home, 'config'))
  writeFileSync(join(home, 'config', 'config.json'), text)
  return { home, file: join(home, 'config', 'config.json') }
}

it.each(['{ broken', '[{"timeout":"5m"}]', '{"profiles":[1]}', '{"profiles":{"default":[1]}}'])(
  'config does not touch a file that it cannot read: %s',
  async (text) => {
    const { home, file } = homeWith(text)
    const set = await runCli('config set timeout 6m', { home })
    expect(set).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`Cannot read the config file ${file}`),
    })
    expect((await runCli('login --no-verify', { home, env: NO_KEY, stdin: 'rk_x' })).code).toBe(2)
    expect((await runCli('status x', { home, env: NO_KEY })).code).toBe(2)
    expect(readFileSync(file, 'utf8')).toBe(text)
  },
)

it.each([{ apiKey: 'rk_by_hand' }, { profiles: { default: { apiKey: 'rk_by_hand' } } }])(
  'config does not use or show a key that was written by hand: %j',
  async (file) => {
    const { home } = homeWith(JSON.stringify(file))
    const { code, stderr } = await runCli('status x', { home, env: NO_KEY })
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.not.stringContaining('rk_by_hand') })
    expect((await runCli('config list', { home })).stdout).not.toContain('rk_by_hand')
  },
)

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  RendererClosed,
  RendererCrashed,
  type RenderJob,
  TooMuchMemory,
} from '../../../src/service/engines/engine.js'
import {
  commandEnvironment,
  createProcessEngine,
  rendererEnvironment,
} from '../../../src/service/engines/process.js'
import { crashLimitFor } from '../../../src/service/worker/attempt.js'
import { createErrorLog } from '../../../src/service/worker/log.js'
import { built } from '../../support/built.js'
import { createGate, createManualClock, temporaryFolder } from '../../support/index.js'
import { processExists } from '../../support/process-exists.js'

let script: string
beforeAll(async () => {
  script = await built(new URL('./odd-renderer.ts', import.meta.url))
})

function createEngine(options: Partial<Parameters<typeof createProcessEngine>[0]> = {}) {
  const engine = createProcessEngine({ script, ...options })
  onTestFinished(() => engine.close())
  return engine
}

const job = (prompt: string, more: Partial<RenderJob> = {}): RenderJob => ({
  kind: 'image',
  input: { prompt },
  folder: temporaryFolder(),
  references: [],
  signal: new AbortController().signal,
  ...more,
})

const made = (of: RenderJob) => readFileSync(join(of.folder, 'file'), 'utf8')

test('each job has a process of its own, which ends with it', async () => {
  const engine = createEngine()
  const jobs = [job('pid'), job('pid')] as const
  expect(await Promise.all(jobs.map((each) => engine.render(each)))).toEqual(
    jobs.map(() => [{ name: 'file', contentType: 'text/plain' }]),
  )
  expect(made(jobs[0])).not.toBe(made(jobs[1]))
  for (const each of jobs) expect(processExists(Number(made(each)))).toBe(false)
})

test('the renderer gets no keys', async () => {
  vi.stubEnv('RUSHES_API_KEY_FILE', 'secret')
  const asked = job('env')
  await createEngine().render(asked)
  expect(made(asked)).toContain('PATH')
  expect(made(asked)).not.toContain('RUSHES_')
})

test('paths, progress and errors cross the border', async () => {
  const engine = createEngine()
  const told: number[] = []
  const many = job('references', { references: ['/references/1', undefined, '/references/3'] })
  await engine.render(many)
  expect(made(many)).toBe('["/references/1",null,"/references/3"]')
  await engine.render(job('progress', { onProgress: (fraction) => told.push(fraction) }))
  expect(told).toEqual([0.25, 0.5, 1])
  const failed = engine.render(job('error'))
  await expect(failed).rejects.toThrow('the paint has run out')
  await expect(failed).rejects.not.toBeInstanceOf(RendererCrashed)
})

test('a process that dies is told apart from a run that fails', async () => {
  const engine = createEngine()
  for (const [prompt, message] of [
    ['crash', 'the renderer crashed (SIGABRT)'],
    // Its child holds on to stderr.
    ['orphan', 'the renderer crashed (exit code 7)'],
  ] as const) {
    const died = engine.render(job(prompt))
    await expect(died).rejects.toBeInstanceOf(RendererCrashed)
    await expect(died).rejects.toThrow(new RendererCrashed(message))
  }
})

test('the end of standard error is for the owner of the run, and no logger finds it', async () => {
  const crash: RendererCrashed = await createEngine()
    .render(job('crash'))
    .then(() => expect.unreachable())
    .catch((error) => error)
  expect(crash.stderrTail).toMatch(/^out of canvas/)
  expect(crashLimitFor(crash).failure).toEqual({
    code: 'renderer_crashed',
    message: expect.stringMatching(/three times .+ End of its standard error: out of canvas/),
  })
  const logged: string[] = []
  const take = (...parts: readonly unknown[]) => void logged.push(inspect(parts, { depth: 9 }))
  const log = createErrorLog(take, createManualClock())
  log(crash)
  // As the cause of another error, which is logged with all its properties.
  log(new Error('the run failed', { cause: crash }))
  expect(logged.join('\n')).toContain('the renderer crashed (SIGABRT)')
  expect(logged.join('\n')).not.toContain('canvas')
})

test('a process that takes too much memory is ended', async () => {
  const greedy = job('memory')
  const ended = createEngine().render(greedy)
  // The worker gives up such a run at once, as after any error of the engine.
  await expect(ended).rejects.toBeInstanceOf(TooMuchMemory)
  await expect(ended).rejects.not.toBeInstanceOf(RendererCrashed)
  await expect(ended).rejects.toThrow('The renderer needed more than 256 MiB of memory.')
  expect(processExists(Number(made(greedy)))).toBe(false)
})

test('a script that is not there is a death with a reason', async () => {
  const engine = createEngine({ script: '/nowhere/renderer.js' })
  await expect(engine.render(job('pid'))).rejects.toMatchObject({
    message: 'the renderer crashed (exit code 1)',
    stderrTail: expect.stringContaining('Cannot find module'),
  })
})

test('an aborted job rejects with the reason, and its process is gone', async () => {
  const engine = createEngine()
  const stop = new AbortController()
  const begun = createGate()
  const hanging = job('hang', { signal: stop.signal, onProgress: () => begun.open() })
  const rendering = expect(engine.render(hanging)).rejects.toThrow('no longer wanted')
  await begun.after
  const pid = Number(made(hanging))
  stop.abort(new Error('no longer wanted'))
  await rendering
  expect(processExists(pid)).toBe(false)
})

test('a process that will not end is ended by force', async () => {
  const clock = createManualClock()
  const engine = createEngine({ clock })
  const stop = new AbortController()
  const begun = createGate()
  const stubborn = job('stubborn', { signal: stop.signal, onProgress: () => begun.open() })
  const rendering = expect(engine.render(stubborn)).rejects.toThrow('enough')
  await begun.after
  stop.abort(new Error('enough'))
  await clock.advance(999)
  expect(processExists(Number(made(stubborn)))).toBe(true)
  await clock.advance(1)
  await rendering
})

test('every process is ended when the engine closes', async () => {
  const engine = createEngine()
  const begun = createGate()
  const hanging = job('hang', { onProgress: () => begun.open() })
  const rendering = expect(engine.render(hanging)).rejects.toBeInstanceOf(RendererClosed)
  await begun.after
  await engine.close()
  await rendering
  expect(processExists(Number(made(hanging)))).toBe(false)
  await expect(engine.render(job('pid'))).rejects.toBeInstanceOf(RendererClosed)
})

/** What a model needs. */
const KEPT = {
  PATH: '/usr/bin',
  HOME: '/models',
  USER: 'rushes',
  LANG: 'C.UTF-8',
  CUDA_VISIBLE_DEVICES: '1',
  LD_LIBRARY_PATH: '/opt/cuda/lib64',
  HTTPS_PROXY: 'http://proxy.example.com:3128',
  TMPDIR: '/scratch',
}
const KEYS_OF_THE_MODEL = {
  HF_TOKEN: 'hf_abcdefgh',
  IMAGES_API_KEY: 'sk-own-key',
  REDIS_URL: 'redis://127.0.0.1:6379/2',
}

const PASSWORD = 'pass/word+1'
const DATABASE = `postgres://rushes:${encodeURIComponent(PASSWORD)}@db.example.com:5432/rushes`
const SERVICE = {
  RUSHES_API_KEY: 'rk_0123456789',
  RUSHES_STATE_DIR: '/state',
  PGHOST: 'db.example.com',
  PGPASSWORD: 'pg-password',
  AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'aws-secret',
  AWS_SESSION_TOKEN: 'aws-session',
  AWS_PROFILE: 'rushes',
  AWS_SHARED_CREDENTIALS_FILE: '/etc/rushes/aws',
  AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
  CREDENTIALS_DIRECTORY: '/run/credentials/rushes.service',
}

describe('the environment of a command', () => {
  test('has the variables of the service, without its own settings and secrets', () => {
    const env = { ...KEPT, ...KEYS_OF_THE_MODEL, ...SERVICE, RUSHES_DATABASE_URL: DATABASE }
    expect(commandEnvironment(env)).toEqual({ ...KEPT, ...KEYS_OF_THE_MODEL })
  })

  test.each([
    ['the URL of the database', DATABASE],
    ['the URL of the database with options', `${DATABASE}?sslmode=require`],
    ['the database for another library', DATABASE.replace('postgres:', 'postgresql+psycopg2:')],
    ['the password of the database', PASSWORD],
    ['the password of the database as it is in the URL', encodeURIComponent(PASSWORD)],
    ['the API key', SERVICE.RUSHES_API_KEY],
    ['PGPASSWORD', SERVICE.PGPASSWORD],
    ['the password of the database in words', `host=db user=rushes password=${PASSWORD} dbname=other`],
    ['the password of the database, quoted', `{"user":"rushes","password":"${PASSWORD}"}`],
    ['the password of the database with its user', `rushes:${PASSWORD}`],
    ['the password of the database for another one', DATABASE.replace('rushes:', 'models:')],
    ['the AWS secret key', SERVICE.AWS_SECRET_ACCESS_KEY],
  ])('has no other variable with %s', (_name, value) => {
    const env = { ...KEPT, ...KEYS_OF_THE_MODEL, ...SERVICE, OTHER_NAME: value }
    expect(commandEnvironment(env, [DATABASE])).toEqual({ ...KEPT, ...KEYS_OF_THE_MODEL })
  })

  test.each([
    ['postgres://rushes@db/rushes?password=in-query&sslmode=require', 'in-query'],
    ['postgres://db/rushes?user=rushes&password=in%2Fquery', 'in/query'],
    ['postgres://db/rushes?sslpassword=in-query', 'in-query'],
  ])('with %s as the URL, %s is a secret', (url, password) => {
    const env = { ...KEPT, ONE: password, OTHER: `postgres://models@db2/models?password=${password}` }
    expect(commandEnvironment(env, [url])).toEqual(KEPT)
  })

  test.each([
    [{ PGPASSWORD: 'root' }, undefined, { USER: 'root', LOGNAME: 'root' }],
    [{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }, undefined, { NODE_ENV: 'test' }],
    [{ PGPASSWORD: '1' }, undefined, { HF_HUB_OFFLINE: '1' }],
    [{ PGPASSWORD: '#secret-long-1' }, undefined, { EMPTY: '' }],
    [
      { PGPASSWORD: 'postgres' },
      undefined,
      { PATH: '/usr/lib/postgresql/bin:/opt/postgres:/bin', HOME: '/var/lib/postgres' },
    ],
    [{}, 'postgres://rushes:1@db/rushes', { CUDA_VISIBLE_DEVICES: '1' }],
    [{}, 'postgres://rushes:rushes@db/rushes', { USER: 'rushes' }],
    [{}, 'postgres://db/rushes', { MODELS: 'postgres://db/models' }],
    [{}, 'redis://localhost', { REDIS_URL: 'redis://localhost:6379/2' }],
    [{}, '', { EMPTY: '' }],
  ])('with the secrets %j of the service and the URL %s, %j is kept', (secrets, url, env) => {
    expect(commandEnvironment({ ...secrets, ...env }, [url])).toEqual(env)
  })
})

test('the environment of the built-in renderer has no secrets at all', () => {
  const env = {
    ...KEPT,
    ...SERVICE,
    HF_TOKEN: 'x',
    IMAGES_API_KEY: 'x',
    POSTGRES_PASSWORD: 'x',
    DATABASE_URL: 'postgres://db/rushes',
    DSN: DATABASE,
  }
  expect(rendererEnvironment(env)).toEqual(KEPT)
})

/**
 * The commands in `deploy/` as processes: the nodes of the compose file on a real PostgreSQL and an S3 store behind a real nginx,
 * and the units. Only addresses, ports and credentials are replaced.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bash, createPlace, type Place, type Running, rushes, start } from './support/binary.js'
import { DEPLOY, healthCheck, readCompose, readUnit, wordsOfUnit } from './support/deploy.js'
import { ask, hasNginx, startFakeNode, startNginx } from './support/nginx.js'
import { canRestartPostgres, sharedPostgres } from './support/postgres.js'
import { hasS3rver, startS3Store } from './support/s3-store.js'
import { until } from './support/until.js'

const RUNS = '/api/v1/runs'
const PASSWORD = 'p@ss word'
const hasPsql = spawnSync('psql', ['--version']).status === 0

const portIn = (url: string): number => Number(new URL(url).port)

/** Runs what the image of PostgreSQL runs at its first start; the URL of the database that it makes. */
async function createRole(place: Place): Promise<string> {
  const { url } = await sharedPostgres()
  const { hostname, port, username, password } = new URL(url)
  const admin = place.with({
    PGHOST: hostname,
    PGPORT: port,
    PGPASSWORD: decodeURIComponent(password),
    POSTGRES_USER: username,
    DATABASE_PASSWORD: PASSWORD,
  })
  const made = await bash(admin, `${DEPLOY}/postgres/create-role.sh`)
  expect(made.code, made.stderr).toBe(0)
  const own = new URL(url)
  own.username = 'rushes'
  own.password = encodeURIComponent(PASSWORD)
  own.pathname = '/rushes'
  return own.href
}

/** Starts a node; resolves with its URL as soon as it listens. */
async function startNode(place: Place, words: readonly string[], command?: string) {
  const node = start(place, words, { stdin: 'ignore', ...(command !== undefined && { command }) })
  const [line] = await node.prints('stdout', /^\{.*\}$/m)
  return { node, url: String(JSON.parse(line).url) }
}

async function stop(node: Running): Promise<void> {
  node.kill('SIGTERM')
  expect((await node.ended).code).toBe(0)
}

/** As Docker runs it, with the port of this node. */
async function isHealthy(place: Place, url: string): Promise<boolean> {
  const mainProcess = join(place.home, 'cmdline')
  writeFileSync(mainProcess, `rushes\0serve\0--port=${portIn(url)}\0`)
  const [command = '', ...words] = healthCheck(mainProcess)
  return (await start(place, words, { command, stdin: 'ignore' }).ended).code === 0
}

describe.skipIf(!(canRestartPostgres && hasPsql && hasS3rver && hasNginx))(
  'the nodes of compose.yaml',
  () => {
    test('accept, render and deliver a run', async () => {
      const place = createPlace()
      const s3 = await startS3Store('rushes')
      const database = await createRole(place)
      const env = { ...s3.env, RUSHES_DATABASE_URL: database }
      const { services } = readCompose({
        DATABASE_PASSWORD: 'a',
        DATABASE_ADMIN_PASSWORD: 'b',
        S3_ACCESS_KEY: 'c',
        S3_SECRET_KEY: 'd',
        PUBLIC_URL: 'https://media.test',
      })
      const started = async (name: string) => {
        const { command = [], environment = {} } = services[name] ?? {}
        expect(Object.keys(environment).sort()).toEqual(Object.keys(env).sort())
        const words = command.map((word) =>
          word.replace('172.30.78.10', '127.0.0.1').replace('--metrics-port=9464', '--metrics-port=0'),
        )
        // Nodes share nothing but the database and the storage.
        return await startNode(createPlace().with(env), [...words, '--port', '0', '--json'])
      }
      const [one, two, worker] = await Promise.all(['api-1', 'api-2', 'worker'].map(started))
      if (one === undefined || two === undefined || worker === undefined) throw new Error('not started')
      for (const { url } of [one, two, worker]) expect(await isHealthy(place, url)).toBe(true)

      const nginx = await startNginx([portIn(one.url), portIn(two.url)])
      const admin = ['admin', 'key', 'create', '--account', 'default', '--rate', '1000/1s']
      const key = (await rushes(place.with(env), admin)).stdout.trim()
      const headers = { authorization: `Bearer ${key}` }
      const body = JSON.stringify({ model: 'rushes/preview-image', input: { prompt: 'a fox' } })
      const created = await ask(nginx.port, { method: 'POST', path: RUNS, headers, body })
      expect(created.status).toBe(201)
      const { id } = JSON.parse(created.body.toString())
      const output = await until('the output', async () => {
        const run = JSON.parse((await ask(nginx.port, { path: `${RUNS}/${id}`, headers })).body.toString())
        return run.output === null ? undefined : new URL(run.output.urls[0])
      })
      expect(output.origin).toBe('https://media.test')
      // With --storage-proxy it comes through the node.
      const file = await ask(nginx.port, { path: output.pathname, headers: { range: 'bytes=1-3' } })
      expect(file).toMatchObject({ status: 206, headers: { 'content-type': 'image/png' } })
      expect(file.body.toString()).toBe('PNG')
      expect(s3.keys()).toEqual(['service/database-id', expect.stringMatching(/^service\/outputs\//)])

      // The port of a node that has stopped may be taken by another test.
      const silent = await startFakeNode((socket) => socket.destroy())
      expect(await isHealthy(place, `http://127.0.0.1:${silent.port}`)).toBe(false)
      await Promise.all([one, two, worker].map(({ node }) => stop(node)))
    })
  },
)

describe('the units', () => {
  /** Starts the command of a unit, as systemd would: with its credentials, its state folder and the variables of serve.env. */
  function startUnit(name: string, database: string, vars: Readonly<Record<string, string>>) {
    const place = createPlace()
    const credentials = join(place.home, 'credentials')
    mkdirSync(credentials)
    const unit = readUnit(name)
    expect(unit.get('LoadCredential')?.[0]).toBe('database-url:/etc/rushes/database-url')
    writeFileSync(join(credentials, 'database-url'), database)
    const [line = ''] = unit.get('ExecStart') ?? []
    const [command = '', ...words] = wordsOfUnit(line.replace('--port 7878', '--port 0'), vars, '0')
    const env = { CREDENTIALS_DIRECTORY: credentials, RUSHES_STATE_DIR: join(place.home, 'state') }
    return startNode(place.with(env), words, command)
  }

  test('run one process with SQLite without a database file', async () => {
    const { node, url } = await startUnit('rushes.service', '\n', { SERVE_FLAGS: '--json' })
    expect((await ask(portIn(url), { path: '/readyz' })).status).toBe(200)
    const [line] = await node.prints('stdout', /^\{.*\}$/m)
    expect(JSON.parse(line)).toMatchObject({ role: 'all', data: expect.stringMatching(/\/state\/service$/) })
    await stop(node)
  })

  test.skipIf(!canRestartPostgres)(
    'run an API node and a worker with PostgreSQL with a database file',
    async () => {
      const server = await sharedPostgres()
      const database = `${await server.createDatabase()}\n`
      const flags = { SERVE_FLAGS: '--json', API_FLAGS: '--role api' }
      const api = await startUnit('rushes.service', database, flags)
      const worker = await startUnit('rushes-worker@.service', database, flags)
      const [line] = await api.node.prints('stdout', /^\{.*\}$/m)
      expect(JSON.parse(line)).toMatchObject({ role: 'api', database: expect.not.stringContaining('\n') })
      expect((await ask(portIn(worker.url), { path: '/readyz' })).status).toBe(200)
      expect((await ask(portIn(worker.url), { path: `${RUNS}/run_1` })).status).toBe(404)
      await Promise.all([stop(api.node), stop(worker.node)])
    },
  )
})

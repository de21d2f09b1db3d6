/** The service behind PgBouncer in transaction mode, where nothing of a connection outlives a transaction. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { createService } from '../../src/service/index.js'
import { addAccount, ask, createInstantEngine, FOX, temporaryFolder, until } from '../support/index.js'
import { hasPostgres, openTestStore, temporaryDatabase } from '../support/postgres.js'
import { freePort } from '../support/postgres-server.js'

const PROGRAM = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'pgbouncer'))
  .find((path) => existsSync(path))

const hasPgBouncer = PROGRAM !== undefined

const RUNS = '/api/v1/runs'
const BASE = 'http://service.test'

describe.skipIf(!hasPostgres || !hasPgBouncer)('behind PgBouncer', () => {
  async function start(databaseUrl: string, dataFolder = temporaryFolder()) {
    const service = await createService({
      ...{ dataFolder, databaseUrl, engine: createInstantEngine(), concurrency: 4, clock: systemClock },
      publicUrl: BASE,
    })
    onTestFinished(() => service.close())
    return { service, fetch: service.fetch, baseUrl: BASE, apiKey: service.apiKey ?? '', dataFolder }
  }
  type Started = Awaited<ReturnType<typeof start>>

  const isReady = async (node: Started) => (await ask(node, 'GET', '/readyz')).status === 200

  test('accepts, renders and keeps runs, also after a restart of the service and of the pooler', async () => {
    const direct = await temporaryDatabase()
    const pooler = await startPgBouncer(direct)
    const node = await start(pooler.url)
    node.service.startRendering()
    expect(await isReady(node)).toBe(true)

    const keys = [node.apiKey]
    for (const name of ['a', 'b', 'c', 'd'])
      keys.push(await addAccount({ ...node, databaseUrl: pooler.url, clock: systemClock as never }, name))
    const created = await Promise.all(
      Array.from({ length: 60 }, (_, n) => ask(node, 'POST', RUNS, FOX, { key: keys[n % keys.length] })),
    )
    expect(created.map(({ status }) => status)).toEqual(Array(60).fill(201))
    const store = await openTestStore(direct)
    const ended = async () => (await store.listRuns({ accountId: undefined, limit: 500 })).runs
    await until('the renders', async () => (await ended()).every(({ status }) => status === 'succeeded'))
    expect(await ended()).toHaveLength(60)

    const { port } = new URL(pooler.url)
    await pooler.stop()
    // An answer is kept for a second.
    await until('a service that is not ready', async () => !(await isReady(node)))
    const again = await startPgBouncer(direct, Number(port))
    await until('a ready service', () => isReady(node))
    await node.service.close()

    const restarted = await start(again.url, node.dataFolder)
    restarted.service.startRendering()
    const [first] = created
    const key = keys[0]
    const found = await ask(restarted, 'GET', `${RUNS}/${first?.body.id}`, undefined, { key })
    expect(found.body.status).toBe('succeeded')
    expect((await store.verify()).problems).toEqual([])
  })
})

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534
const RUNS_AS = userInfo().uid === 0 ? { uid: NOBODY, gid: NOBODY } : {}

interface TestPgBouncer {
  /** URL of the same database, through the pooler. */
  readonly url: string
  stop(): Promise<void>
}

/** Starts a pooler with few connections to the server of this URL, on this port or a free one. Ends with the test. */
async function startPgBouncer(url: string, port?: number): Promise<TestPgBouncer> {
  const { hostname, port: serverPort, username } = new URL(url)
  const listenPort = port ?? (await freePort())
  const folder = temporaryFolder()
  const path = join(folder, 'pgbouncer.ini')
  writeFileSync(
    path,
    `[databases]
* = host=${hostname} port=${serverPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
`,
  )
  chmodSync(folder, 0o755)
  const child = spawn(PROGRAM ?? '', [path], { ...RUNS_AS, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`PgBouncer has ended: ${log}`)))
    child.stderr.on('data', (text) => {
      log += text
      if (log.includes('process up')) resolve()
    })
  })
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  onTestFinished(stop)
  return { url: Object.assign(new URL(url), { port: String(listenPort) }).href, stop }
}

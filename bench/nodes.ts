/**
 * What several nodes answer a second: `npm run bench:nodes`. One node on SQLite, one and three on a PostgreSQL of this machine; creates
 * and status requests with 16 and with 64 connections, spread over the nodes. Then how long it takes until another worker renders
 * the run of one that was killed with -9. Prints Markdown tables. All of it shares the cores of one machine, so three
 * nodes show what the database allows, and not what three machines answer.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres-server.js'
import { addKeys } from './keys.js'
import {
  best,
  cellsOf,
  createText,
  dial,
  type Figures,
  flood,
  type Server,
  started,
  statusText,
} from './load.js'
import { median, row } from './table.js'

const SECONDS = 4
const ROUNDS = 3
const CONNECTIONS = [16, 64] as const
const KEYS = 24_000
const DEATHS = 5

const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
const env = { PATH: process.env.PATH, HOME: folder }
const program = resolve('bin/rushes.cjs')
const serve = (...words: readonly string[]): readonly string[] => [
  ...[program, 'serve', '--port', '0', '--json', '--concurrency', '1'],
  ...words,
]

/** The nodes, and their keys, which are all of one account. */
interface Service {
  readonly name: string
  readonly nodes: readonly Server[]
  readonly keys: readonly string[]
}

async function measure({ name, nodes, keys }: Service): Promise<void> {
  const ports = nodes.map(({ port }) => port)
  let turn = 0
  const key = () => keys[turn++ % keys.length] ?? ''
  const line = await dial(ports[0] ?? 0)
  const { id } = JSON.parse((await line.ask(createText(key()))).body)
  line.end()
  for (const connections of CONNECTIONS)
    for (const [what, status, next] of [
      ['status', 200, () => statusText(key(), id)],
      ['create', 201, () => createText(key())],
    ] as const) {
      const rounds: Figures[] = []
      for (let round = 0; round <= ROUNDS; round++) {
        const figures = await flood({ ports, connections, status, seconds: SECONDS, next })
        // The first round warms the machine code.
        if (round > 0) rounds.push(figures)
      }
      row(name, connections, what, ...cellsOf(best(rounds)))
    }
  for (const node of nodes) await node.end()
}

/** Milliseconds from the end of a worker until another one renders its run. */
async function timeDeath(database: string, keys: readonly string[]): Promise<number> {
  const starts = join(folder, 'starts')
  const words = ['--database', database, '--data', join(folder, 'data')]
  const engine = ['--engine', `image=date +%s%N >> ${starts}; sleep 60`]
  const api = await started(serve(...words, '--role', 'api'), env)
  const workers: ChildProcess[] = []
  const startWorker = async () => {
    const child = spawn(process.execPath, serve(...words, ...engine, '--role', 'worker'), {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout !== null) await once(child.stdout, 'data')
    workers.push(child)
    return child
  }
  const times = () => (existsSync(starts) ? readFileSync(starts, 'utf8').trim().split('\n') : [])
  const renders = async (count: number) => {
    while (times().length < count) await sleep(5)
    return Number(BigInt(times()[count - 1] ?? 0) / 1_000_000n)
  }
  try {
    const first = await startWorker()
    const line = await dial(api.port)
    await line.ask(createText(keys[0] ?? ''))
    line.end()
    await renders(1)
    await startWorker()
    await sleep(1_500)
    const killedAtMs = Date.now()
    first.kill('SIGKILL')
    return (await renders(2)) - killedAtMs
  } finally {
    for (const worker of workers) worker.kill('SIGKILL')
    await api.end()
    rmSync(starts, { force: true })
  }
}

const postgres = await startPostgres()
try {
  // Nothing is rendered while requests are measured.
  const idle = ['--role', 'api']
  const onPostgres = async (name: string, count: number): Promise<Service> => {
    const database = await postgres.createDatabase()
    const keys = await addKeys(database, KEYS)
    const words = ['--database', database, '--data', join(folder, name), ...idle]
    const nodes = await Promise.all(Array.from({ length: count }, () => started(serve(...words), env)))
    return { name, nodes, keys }
  }
  row('', 'connections', '', 'a second', 'p50 ms', 'p99 ms')
  row('---', '--:', '---', '--:', '--:', '--:')
  const data = join(folder, 'sqlite')
  mkdirSync(data)
  const keys = await addKeys(join(data, 'service.db'), KEYS)
  await measure({ name: 'SQLite, 1 node', nodes: [await started(serve('--data', data, ...idle), env)], keys })
  await measure(await onPostgres('PostgreSQL, 1 node', 1))
  await measure(await onPostgres('PostgreSQL, 3 nodes', 3))

  const deaths: number[] = []
  for (let death = 0; death < DEATHS; death++) {
    const database = await postgres.createDatabase()
    const keys = await addKeys(database, 1)
    deaths.push(await timeDeath(database, keys))
  }
  console.log(
    `\nA killed worker's run is rendered by another after ${median(deaths)} ms (${deaths.join(', ')}).`,
  )
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

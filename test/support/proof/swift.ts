/**
 * OpenStack Swift with its S3 API, which checks signatures. All servers run on loopback, from the Debian packages
 * swift-proxy, swift-object, swift-container and swift-account. The packages may be unpacked into a folder: SWIFT_ROOT.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const ROOT = process.env.SWIFT_ROOT ?? '/'
const PYTHON = '/usr/bin/python3'
const START_LIMIT_MS = 120_000

export const hasSwift = existsSync(PYTHON) && existsSync(join(ROOT, 'usr/bin/swift-proxy-server'))

export interface Swift {
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Kills all processes. */
  stop(): Promise<void>
  /** Starts Swift again on the same ports, with the same objects. */
  start(): Promise<void>
}

const SERVERS = ['account', 'container', 'object'] as const

const SWIFT_CONF = `[swift-hash]
swift_hash_path_suffix = a
swift_hash_path_prefix = b
[storage-policy:0]
name = one
default = yes
`

const serverConf = (name: string, port: number, folder: string) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${execFileSync('id', ['-un'], { encoding: 'utf8' }).trim()}
swift_dir = ${folder}/etc
devices = ${folder}/node
mount_check = false
disable_fallocate = true
workers = 0
log_level = ERROR
[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
`

const proxyConf = (port: number, folder: string) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${execFileSync('id', ['-un'], { encoding: 'utf8' }).trim()}
swift_dir = ${folder}/etc
workers = 0
log_level = ERROR
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth copy slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
# Half a second by default, which a busy machine exceeds.
conn_timeout = 20
node_timeout = 60
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
dns_compliant_bucket_names = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
${['catch_errors', 'listing_formats', 'copy', 'slo'].map((name) => `[filter:${name}]\nuse = egg:swift#${name}\n`).join('')}`

/** The servers look for swift.conf in /etc/swift. */
const LAUNCHER = `import sys, runpy
import swift.common.utils as utils
folder, script, conf = sys.argv[1:4]
utils.set_swift_dir(folder)
sys.argv = [script, conf]
runpy.run_path(script, run_name='__main__')
`

/** Starts Swift with its files in `folder`, which must exist. Call `stop` at the end. */
export async function startSwift(folder: string): Promise<Swift> {
  const [proxyPort, ...ports] = await freePorts(1 + SERVERS.length)
  const env = {
    PATH: process.env.PATH,
    ...(ROOT !== '/' && {
      PYTHONPATH: join(ROOT, 'usr/lib/python3/dist-packages'),
      LD_LIBRARY_PATH: join(ROOT, 'usr/lib/x86_64-linux-gnu'),
    }),
  }
  const etc = join(folder, 'etc')
  for (const each of [etc, join(folder, 'node/d1')]) mkdirSync(each, { recursive: true })
  writeFileSync(join(etc, 'swift.conf'), SWIFT_CONF)
  writeFileSync(join(etc, 'launch.py'), LAUNCHER)
  writeFileSync(join(etc, 'proxy.conf'), proxyConf(proxyPort ?? 0, folder))
  for (const [at, name] of SERVERS.entries()) {
    const port = ports[at] ?? 0
    writeFileSync(join(etc, `${name}.conf`), serverConf(name, port, folder))
    for (const words of [['create', '4', '1', '1'], ['add', `r1z1-127.0.0.1:${port}/d1`, '1'], ['rebalance']])
      execFileSync(PYTHON, [join(ROOT, 'usr/bin/swift-ring-builder'), `${name}.builder`, ...words], {
        cwd: etc,
        env,
      })
  }

  let children: ChildProcess[] = []
  const endpoint = `http://127.0.0.1:${proxyPort}`
  const log = join(folder, 'log')

  async function stop(): Promise<void> {
    const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)))
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await Promise.all(ended)
  }

  async function start(): Promise<void> {
    const output = openSync(log, 'a')
    children = [...SERVERS, 'proxy'].map((name) =>
      spawn(
        PYTHON,
        [join(etc, 'launch.py'), etc, join(ROOT, `usr/bin/swift-${name}-server`), join(etc, `${name}.conf`)],
        { env, stdio: ['ignore', output, output] },
      ),
    )
    const until = performance.now() + START_LIMIT_MS
    for (const port of [proxyPort, ...ports]) {
      // Any response means that the server is running.
      while (!(await isAnswering(`http://127.0.0.1:${port}`))) {
        if (performance.now() > until) throw new Error(`Swift did not start: ${readFileSync(log, 'utf8')}`)
        await sleep(100)
      }
    }
  }

  await start()
  return { endpoint, accessKeyId: 'test:tester', secretAccessKey: 'testing', stop, start }
}

const isAnswering = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  )

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) =>
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
        ),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

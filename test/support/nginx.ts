/** Runs a real nginx with the configuration of `deploy/`, for nodes on free ports of this machine. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterFile } from './after-file.js'
import { bash, createPlace, type Ended, start } from './binary.js'
import { freePort } from './postgres-server.js'
import { until } from './until.js'

const CONFIGURATION = fileURLToPath(new URL('../../deploy/nginx/nginx.conf', import.meta.url))

const nginxPath = ['nginx', '/usr/sbin/nginx'].find((name) => spawnSync(name, ['-v']).status === 0)
export const hasNginx = nginxPath !== undefined
if (!hasNginx) console.log('nginx is not installed: the tests of deploy/nginx are skipped.')

/** Addresses of the nodes in the configuration. */
const NODES = ['127.0.0.1:7878', '127.0.0.1:7879']

export interface Nginx {
  readonly port: number
  readonly tlsPort: number
  /** Text of the configuration that nginx runs with. */
  readonly file: string
  /** Returns the error log so far. */
  errors(): string
  /** Result of `nginx -t`. */
  readonly checked: { readonly code: number | null; readonly stderr: string }
}

/** Starts nginx. `nodes`: ports of the two nodes. Changes only addresses, ports and paths of the configuration. */
export async function startNginx(nodes: readonly [number, number]): Promise<Nginx> {
  const place = createPlace()
  const folder = place.folder
  const [port, tlsPort] = [await freePort(), await freePort()]
  const tls = join(folder, 'tls')
  mkdirSync(tls)
  await bash(
    place,
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout ${tls}/tls.key -out ${tls}/tls.crt`,
  )
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const [file, errors] = [join(folder, 'nginx.conf'), join(folder, 'errors.log')]
  const replaced: readonly (readonly [string, string])[] = [
    ...NODES.map((address, at) => [address, `127.0.0.1:${nodes[at]}`] as const),
    ['listen 8080;', `listen 127.0.0.1:${port};`],
    ['listen 8443 ssl;', `listen 127.0.0.1:${tlsPort} ssl;`],
    ['/etc/nginx/tls', tls],
    ['/tmp/nginx.pid', join(folder, 'nginx.pid')],
    ['/var/log/nginx/error.log', errors],
    ['worker_processes auto', 'worker_processes 1'],
    // Needed by users without write access to the folders of the nginx package.
    ['access_log off;', `access_log off; ${temporary.join(' ')}`],
  ]
  let text = readFileSync(CONFIGURATION, 'utf8')
  for (const [from, to] of replaced) {
    if (!text.includes(from)) throw new Error(`nginx.conf does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  writeFileSync(file, text)
  const words = ['-p', folder, '-c', file, '-g', 'daemon off;']
  const command = nginxPath ?? 'nginx'
  const checked = await start(place, ['-t', ...words], { command, stdin: 'ignore' }).ended
  // Ends after ten minutes, in case the test process was killed.
  const limited = ['--signal=TERM', '600', command, ...words]
  const running = start(place, limited, { command: 'timeout', stdin: 'ignore' })
  // Uses SIGTERM: after SIGKILL, the worker processes would continue.
  afterFile(() => {
    running.kill('SIGTERM')
    return running.ended
  })
  let end: Ended | undefined
  running.ended.then((ended) => {
    end = ended
  })
  await until('nginx', () => {
    if (end !== undefined) throw new Error(`nginx ended: ${end.stderr}`)
    return ask(port, { path: '/' }).then(
      () => true,
      () => undefined,
    )
  })
  return { port, tlsPort, file, errors: () => readFileSync(errors, 'utf8'), checked }
}

interface FakeNode {
  readonly port: number
  /** First line of each received request. */
  readonly requests: readonly string[]
}

/** Starts a node that handles the first bytes of every connection with this function. */
export async function startFakeNode(answer: (socket: Socket) => void): Promise<FakeNode> {
  const requests: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      requests.push(bytes.toString('latin1').split('\r\n')[0] ?? '')
      answer(socket)
    })
  }).listen(0, '127.0.0.1')
  afterFile(() => server.close())
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, requests }
}

interface Asked {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string | undefined
  /** Source address of the request. */
  readonly from?: string
  readonly tls?: boolean
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Sends one request on a new connection. Does not follow redirects. */
export const ask = (
  port: number,
  { path, method = 'GET', headers = {}, body, from, tls }: Asked,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method,
      agent: false as const,
      headers: { ...length, ...headers },
      ...(from !== undefined && { localAddress: from }),
      rejectUnauthorized: false,
    }
    let answered = false
    const sent = (tls ? requestHttps : requestHttp)(options, (response) => {
      answered = true
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      )
    })
    // After an early response, the service may refuse the rest of the body.
    sent.on('error', (error) => answered || reject(error))
    sent.end(body)
  })

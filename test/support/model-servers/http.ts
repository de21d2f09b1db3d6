/** A model's server on a real port: routes as a function, a record of the requests, and faults by switch. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { whenOver } from '../after-file.js'

export interface ServerRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  // biome-ignore lint/suspicious/noExplicitAny: requests of every shape
  json(): any
  form(): Promise<FormData>
}

export interface ServerAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: Uint8Array | string | object
}

/** After `bytes` of the real answer, the connection breaks, or the server stops to send. */
type BodyFault = { readonly bytes: number; readonly ending: 'reset' | 'pause' }

/** The real answer, or another one, but only when this promise has settled. */
type LateFault = { readonly after: Promise<unknown>; readonly answer?: ServerAnswer }

/** `reset`: the connection breaks before the answer. `lose`: only after the server has acted. `hang`: no answer. */
export type ServerFault = ServerAnswer | BodyFault | LateFault | 'reset' | 'lose' | 'hang'

/** A promise, such as that of a `LateFault`, and the function that fulfils it. */
export function createGate<Value = void>() {
  let open: (value: Value) => void = () => {}
  const after = new Promise<Value>((resolve) => {
    open = resolve
  })
  return { after, open: (value: Value) => open(value) }
}

export interface ModelServer {
  readonly url: string
  /** `POST /prompt` and so on, in order. */
  readonly requests: readonly ServerRequest[]
  /** The number of requests whose method and path begin with this text. */
  count(beginning: string): number
  /** Answers the next requests whose method and path begin with this text in another way. */
  fault(beginning: string, fault: ServerFault, times?: number): void
  /** Compresses every answer from now on, although the client asks for none that is. */
  compress(): void
  /** The number of requests that the client left before their answer. */
  readonly abandoned: number
  /** Refuses connections from now on, and breaks the open ones. */
  close(): Promise<void>
  /** Listens on the same port again. */
  reopen(): Promise<void>
}

type ServerRoutes = (request: ServerRequest) => ServerAnswer | Promise<ServerAnswer>

/** The server is closed when the test or file ends. */
export async function createModelServer(routes: ServerRoutes): Promise<ModelServer> {
  let abandoned = 0
  let compresses = false
  const requests: ServerRequest[] = []
  const faults: { beginning: string; fault: ServerFault; left: number }[] = []
  const nameOf = ({ method, path }: ServerRequest) => `${method} ${path}`

  const encoded = (plain: ServerAnswer) => (compresses ? compressed(plain) : plain)

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    requests.push(request)
    const closed = new Promise<void>((resolve) =>
      response.on('close', () => {
        if (!response.writableFinished) abandoned++
        resolve()
      }),
    )
    const planned = faults.find(({ beginning, left }) => left > 0 && nameOf(request).startsWith(beginning))
    if (planned !== undefined) planned.left--
    const fault = planned?.fault
    if (fault === 'hang') return await closed
    if (fault === 'reset') return void incoming.socket.destroy()
    const bodyFault = typeof fault === 'object' && 'ending' in fault ? fault : undefined
    const lateFault = typeof fault === 'object' && 'after' in fault ? fault : undefined
    if (typeof fault === 'object' && !('ending' in fault || 'after' in fault))
      return await send(response, encoded(fault))
    const result = await routes(request)
    await lateFault?.after
    if (lateFault?.answer !== undefined) return await send(response, lateFault.answer)
    if (fault === 'lose') incoming.socket.destroy()
    else await send(response, encoded(result), bodyFault)
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      console.error(error)
      incoming.socket.destroy()
    })
  })
  const listen = (at: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(at, '127.0.0.1', resolve)
    })
  await listen(0)
  const { port: ownPort } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  whenOver(close)
  return {
    url: `http://127.0.0.1:${ownPort}`,
    requests,
    get abandoned() {
      return abandoned
    },
    count: (beginning) => requests.filter((each) => nameOf(each).startsWith(beginning)).length,
    fault: (beginning, fault, times = 1) => void faults.push({ beginning, fault, left: times }),
    compress: () => {
      compresses = true
    },
    close,
    reopen: () => listen(ownPort),
  }
}

function compressed(answer: ServerAnswer): ServerAnswer {
  const { body = '', headers } = answer
  const isBytes = typeof body === 'string' || body instanceof Uint8Array
  const type = isBytes ? {} : { 'content-type': 'application/json' }
  return {
    ...answer,
    headers: { ...type, ...headers, 'content-encoding': 'gzip' },
    body: gzipSync(isBytes ? body : JSON.stringify(body)),
  }
}

async function send(
  response: ServerResponse,
  { status = 200, headers = {}, body = '' }: ServerAnswer,
  fault?: BodyFault,
): Promise<void> {
  const isBytes = typeof body === 'string' || body instanceof Uint8Array
  const type = isBytes ? {} : { 'content-type': 'application/json' }
  const bytes = Buffer.from(isBytes ? body : JSON.stringify(body))
  response.writeHead(status, { ...type, 'content-length': bytes.byteLength, ...headers })
  if (fault === undefined) return void response.end(bytes)
  await new Promise((resolve) => response.write(bytes.subarray(0, fault.bytes), resolve))
  if (fault.ending === 'reset') response.destroy()
}

async function readRequest(incoming: IncomingMessage): Promise<ServerRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://server.test')
  return {
    method: incoming.method ?? '',
    path: pathname,
    query: searchParams,
    headers: incoming.headers,
    body,
    json: () => JSON.parse(body.toString('utf8')),
    form: () =>
      new Response(body, { headers: { 'content-type': incoming.headers['content-type'] ?? '' } }).formData(),
  }
}

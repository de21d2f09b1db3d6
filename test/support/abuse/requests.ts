/** Helpers of the loads: bodies, raw connections, and counts of outcomes. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export const MIB = 1_048_576
export const IMAGE_MODEL = 'rushes/preview-image'
export const VIDEO_MODEL = 'rushes/preview-video'

/** Target of a load. `keys` belong to one account, `others` to another account. */
export interface Target {
  readonly url: string
  readonly keys: readonly string[]
  readonly others: readonly string[]
}

/** Number of occurrences of each outcome, and other figures. */
export type Figures = Readonly<Record<string, number>>

export interface Reply {
  /** `201`, `400 invalid_input`, `ECONNRESET`. */
  readonly outcome: string
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape
  readonly body: any
}

export function tally(outcomes: readonly string[]): Figures {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

const jsonOf = (text: string) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const outcomeOf = (status: number | undefined, text: string): string =>
  [status, jsonOf(text)?.error?.code].filter((part) => part !== undefined).join(' ')

const newConnections = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })

/** Sends one request, on a new connection or through the agent. */
export function send(
  { url }: Pick<Target, 'url'>,
  key: string,
  path: string,
  body?: Uint8Array,
  agent = newConnections,
): Promise<Reply> {
  return new Promise((resolve) => {
    const sent = request(`${url}${path}`, {
      agent,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        ...(body && { 'content-type': 'application/json', 'content-length': body.byteLength }),
      },
    })
    sent.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.once('close', () =>
        resolve({ outcome: outcomeOf(response.statusCode, text), body: jsonOf(text) }),
      )
    })
    sent.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ outcome: error.code ?? 'error', body: undefined }),
    )
    sent.end(body)
  })
}

export const create = (target: Target, key: string, body: Uint8Array | string): Promise<Reply> =>
  send(target, key, '/api/v1/runs', typeof body === 'string' ? Buffer.from(body) : body)

export const createBody = (model: string, input: object): string => JSON.stringify({ model, input })

/** Sends the same body `count` times, with a limited number of requests in flight. */
export async function createMany(
  target: Target,
  keys: readonly string[],
  body: Uint8Array,
  { count, atOnce }: { readonly count: number; readonly atOnce: number },
): Promise<Figures> {
  const outcomes: string[] = []
  let sent = 0
  const sendOn = async () => {
    while (sent < count) {
      const key = keys[sent++ % keys.length] ?? ''
      outcomes.push((await create(target, key, body)).outcome)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sendOn))
  return tally(outcomes)
}

/** Polls a run once per second until it has ended. Returns its status, or the error of the status request. */
export async function ended(target: Target, key: string, id: string, limitMs = 45_000): Promise<string> {
  const endAt = performance.now() + limitMs
  for (;;) {
    const { outcome, body } = await send(target, key, `/api/v1/runs/${id}`)
    if (outcome === '200' && ['succeeded', 'failed'].includes(body.status))
      return body.error === null ? body.status : `failed ${body.error.code}`
    if (performance.now() > endAt) return `no end after ${limitMs / 1_000} s`
    await sleep(1_000)
  }
}

export interface Line {
  readonly socket: Socket
  /** Beginning of the received text. */
  readonly heard: () => string
  readonly closed: Promise<void>
  isOpen(): boolean
}

/** Opens a connection for raw bytes. */
export async function openLine({ url }: Pick<Target, 'url'>): Promise<Line> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  let heard = ''
  let open = true
  socket.setEncoding('latin1').on('data', (text: string) => {
    if (heard.length < 2_000) heard += text
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) =>
    socket.once('close', () => {
      open = false
      resolve()
    }),
  )
  await Promise.race([once(socket, 'connect').catch(() => {}), closed])
  return { socket, heard: () => heard, closed, isOpen: () => open }
}

export const openLines = (target: Target, count: number): Promise<readonly Line[]> =>
  Promise.all(Array.from({ length: count }, () => openLine(target)))

/** Returns the status of the first response, or how the connection ended. */
export const outcomeOfLine = (line: Line): string => {
  const status = /^HTTP\/1\.1 (\d+)/.exec(line.heard())?.[1]
  const code = /"code":"(\w+)"/.exec(line.heard())?.[1]
  if (status !== undefined) return [status, code].filter((part) => part !== undefined).join(' ')
  return line.isOpen() ? 'open, no response' : 'closed, no response'
}

export const createHead = (key: string, bytes: number): string =>
  `POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${bytes}\r\n\r\n`

/** Load on a service: raw sockets, since a real client costs more than most answers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { quantile } from './table.js'

export const RUN = {
  id: 'run_01234567890123456789',
  model: 'rushes/preview-image',
  status: 'queued',
  input: { prompt: 'a red fox in fresh snow, dawn, long shadows', quality: 'high' },
  output: null,
  error: null,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: null,
  finished_at: null,
}
export const CREATE_BODY = JSON.stringify({ model: RUN.model, input: RUN.input })
export interface Server {
  readonly port: number
  end(): Promise<void>
}

export async function started(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<Server> {
  const child: ChildProcess = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = child.stdout === null ? [''] : await once(child.stdout, 'data')
  const { url } = JSON.parse(String(line))
  return {
    port: Number(new URL(url).port),
    async end() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

const bearer = (key: string): string => `Authorization: Bearer ${key}\r\n`
export const createText = (key: string, body = CREATE_BODY): string =>
  `POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n${bearer(key)}Content-Type: application/json\r\n` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
export const statusText = (key: string, id: string): string =>
  `GET /api/v1/runs/${id} HTTP/1.1\r\nHost: localhost\r\n${bearer(key)}\r\n`

export interface Line {
  /** Sends one request; the status, the body and how long they took. */
  ask(text: string): Promise<{ readonly status: number; readonly body: string; readonly ms: number }>
  end(): void
}

export async function dial(port: number): Promise<Line> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let heard = ''
  let answered: () => void = () => {}
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    heard += text
    const head = heard.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(heard)?.[1])
    if (heard.length >= head + 4 + length) answered()
  })
  return {
    ask: (text) =>
      new Promise((resolve) => {
        const began = performance.now()
        answered = () => {
          const ms = performance.now() - began
          const [status, body] = [Number(heard.slice(9, 12)), heard.slice(heard.indexOf('\r\n\r\n') + 4)]
          heard = ''
          resolve({ status, body, ms })
        }
        socket.write(text)
      }),
    end: () => void socket.destroy(),
  }
}

export interface Figures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

export function figuresOf(ms: readonly number[], elapsedMs: number): Figures {
  const perSecond = (ms.length / elapsedMs) * 1_000
  return { perSecond, p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) }
}

export function expectStatus(wanted: number, { status, body }: { status: number; body: string }): void {
  if (status !== wanted) throw new Error(`answered ${status}: ${body}`)
}

export interface Flood {
  readonly port: number
  readonly connections: number
  /** That every answer must have. */
  readonly status: number
  readonly seconds: number
  next(): string
}

/** As fast as it goes: every connection asks again as soon as it was answered. */
export async function flood({ port, connections, status, next, seconds }: Flood): Promise<Figures> {
  const lines = await Promise.all(Array.from({ length: connections }, () => dial(port)))
  const ms: number[] = []
  const began = performance.now()
  const endAt = began + seconds * 1_000
  await Promise.all(
    lines.map(async (line) => {
      while (performance.now() < endAt) {
        const answer = await line.ask(next())
        expectStatus(status, answer)
        ms.push(answer.ms)
      }
      line.end()
    }),
  )
  return figuresOf(ms, performance.now() - began)
}

export const cellsOf = ({ perSecond, p50, p99 }: Figures): readonly string[] => [
  perSecond.toFixed(0),
  p50.toFixed(2),
  p99.toFixed(2),
]
export const best = (figures: readonly Figures[]): Figures =>
  figures.reduce((one, other) => (other.perSecond > one.perSecond ? other : one))

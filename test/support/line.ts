/** A socket on which a test writes HTTP itself. Records each received byte and how the connection ends. */
import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

interface Line {
  readonly socket: Socket
  /** Resolves when the connection is open. */
  connected(): Promise<void>
  send(text: string): void
  /** Text received so far, one character per byte. */
  readonly heard: string
  /** How the connection ended: `reset`, or `closed` normally. */
  readonly ended: 'reset' | 'closed' | undefined
  /** Resolves when the received text satisfies the condition, or when the connection ends. */
  until(isReached: (heard: string) => boolean): Promise<void>
  /** Waits for this number of responses, or for the end of the connection. Returns the status lines. */
  responses(count: number): Promise<readonly string[]>
  /** Resolves when the other side sends no more. */
  otherSideDone(): Promise<void>
  /** Resolves when the connection is closed. */
  hungUp(): Promise<'reset' | 'closed'>
}

export function dial(url: string, { allowHalfOpen = false } = {}): Line {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen })
  onTestFinished(() => void socket.destroy())
  const news = new EventEmitter()
  let heard = ''
  let ended: 'reset' | 'closed' | undefined
  socket.setEncoding('latin1').on('data', (text: string) => {
    heard += text
    news.emit('news')
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') ended = 'reset'
  })
  socket.on('end', () => news.emit('news'))
  socket.on('close', () => {
    ended ??= 'closed'
    news.emit('news')
  })
  const until = async (isReached: () => boolean) => {
    while (!isReached() && !socket.closed) await once(news, 'news')
  }
  return {
    socket,
    async connected() {
      if (socket.connecting) await once(socket, 'connect')
    },
    send: (text) => void socket.write(text, 'latin1'),
    get heard() {
      return heard
    },
    get ended() {
      return ended
    },
    until: (isReached) => until(() => isReached(heard)),
    async responses(count) {
      const found = () => heard.match(/HTTP\/1\.1 \d+/g) ?? []
      await until(() => found().length >= count)
      return found()
    },
    otherSideDone: () => until(() => socket.readableEnded),
    async hungUp() {
      await until(() => false)
      return ended ?? 'closed'
    },
  }
}

/** Begins a create of this key. The test adds more headers. */
export const createHead = ({ apiKey }: { readonly apiKey: string }): string =>
  `POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n`

export const bodyOf = (heard: string): string => heard.slice(heard.indexOf('\r\n\r\n') + 4)

/** Whether the whole response was received, according to its content-length. */
export function isWhole(heard: string): boolean {
  const [, length] = /^content-length: (\d+)$/im.exec(heard) ?? []
  return heard.includes('\r\n\r\n') && bodyOf(heard).length >= Number(length ?? 0)
}

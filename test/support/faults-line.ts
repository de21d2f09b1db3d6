/** A socket on which a test speaks HTTP itself, and sees byte by byte what comes and how it ends. */
import { connect } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Line {
  say(text: string): void
  /** What came so far, a character a byte. */
  readonly heard: string
  /** How it ended: `reset`, or `closed` in good order. */
  readonly ended: 'reset' | 'closed' | undefined
  until(wanted: (heard: string) => boolean): Promise<void>
  /** Resolves when the other side has hung up. */
  hungUp(): Promise<'reset' | 'closed'>
}

export function dial(url: string): Line {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let heard = ''
  let ended: 'reset' | 'closed' | undefined
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    heard += text
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') ended = 'reset'
  })
  socket.on('close', () => {
    ended ??= 'closed'
  })
  const until = async (wanted: () => boolean) => {
    while (!wanted()) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    say: (text) => void socket.write(text, 'latin1'),
    get heard() {
      return heard
    },
    get ended() {
      return ended
    },
    until: (wanted) => until(() => wanted(heard) || ended !== undefined),
    async hungUp() {
      await until(() => ended !== undefined)
      return ended ?? 'closed'
    },
  }
}

export const bodyOf = (heard: string): string => heard.slice(heard.indexOf('\r\n\r\n') + 4)

/** Whether an answer has come whole, by the length that it declares. */
export function isWhole(heard: string): boolean {
  const [, length] = /^content-length: (\d+)$/im.exec(heard) ?? []
  return heard.includes('\r\n\r\n') && bodyOf(heard).length >= Number(length ?? 0)
}

import { connect } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Exchange } from './openapi.js'

/** Sends bytes, and reads until the service hangs up. */
export async function heardAfter(
  port: number,
  text: string,
  half = false,
): Promise<Pick<Exchange, 'status' | 'body'>> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.setEncoding('utf8').on('data', (more: string) => {
    heard += more
  })
  socket.on('error', () => {})
  if (half) socket.end(text)
  else socket.write(text)
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  socket.destroy()
  const [, status, body = ''] = /^HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n([\s\S]*)$/.exec(heard) ?? []
  return { status: Number(status), body: JSON.parse(body) }
}

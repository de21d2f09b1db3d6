import { dial } from './line.js'
import type { Exchange } from './openapi.js'

/** Sends bytes, and reads until the service closes the connection. */
export async function heardAfter(url: string, text: string): Promise<Pick<Exchange, 'status' | 'body'>> {
  const line = dial(url, { allowHalfOpen: true })
  line.send(text)
  await line.otherSideDone()
  line.socket.destroy()
  const [, status, body = ''] = /^HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n([\s\S]*)$/.exec(line.heard) ?? []
  return { status: Number(status), body: JSON.parse(Buffer.from(body, 'latin1').toString()) }
}

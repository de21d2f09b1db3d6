import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createTestService } from '../support/service.js'

/** A connection that stays open, as a proxy has them; what it received so far. */
async function dial(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, 'connect')
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
  })
  return {
    send: (text: string) => void socket.write(text),
    ended: once(socket, 'close'),
    received: () => received,
  }
}

const GET = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

describe('a service that drains', () => {
  it('accepts no connection, and answers what arrives on those that are open, which it then closes', async () => {
    const { service, clock } = await createTestService()
    const { url } = await service.listen({ host: '127.0.0.1', port: 0 })
    const port = Number(new URL(url).port)
    const open = await dial(port)
    open.send(GET)
    await expect.poll(open.received).toMatch(/200 OK/)
    expect(open.received()).not.toMatch(/connection: close/i)

    // Their first requests are on their way, or not.
    const [late, idle] = [await dial(port), await dial(port)]

    const closing = service.close({ drain: true })
    await expect.poll(() => fetch(url).then(String, () => 'refused')).toBe('refused')
    open.send(GET)
    await open.ended
    expect(open.received().match(/200 OK/g)).toHaveLength(2)
    expect(open.received()).toMatch(/connection: close/i)
    late.send(GET.replace('healthz', 'readyz'))
    await late.ended
    expect(late.received()).toMatch(/503 Service Unavailable/)
    await clock.runUntil(closing)
    await idle.ended
  })

  it('otherwise closes at once', async () => {
    const { service } = await createTestService()
    const { url } = await service.listen({ host: '127.0.0.1', port: 0 })
    await service.close()
    await expect(fetch(url)).rejects.toThrow('fetch failed')
  })
})

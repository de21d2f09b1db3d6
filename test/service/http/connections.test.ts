import { once } from 'node:events'
import { fastify } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { clientAddress } from '../../../src/service/http/connections.js'
import { createNetworkMatcher } from '../../../src/service/rules/networks.js'
import { dial } from '../../support/line.js'

test.each([
  ['without a proxy', false],
  ['behind a trusted proxy', createNetworkMatcher(['127.0.0.1'])],
] as const)('a client that has left meanwhile has no address: %s', async (_name, trustProxy) => {
  const app = fastify({ trustProxy })
  onTestFinished(() => app.close())
  const seen: unknown[] = []
  app.get('/', async (request) => {
    line.socket.destroy()
    await once(request.raw.socket, 'close')
    try {
      seen.push(clientAddress(request))
    } catch (error) {
      seen.push(error)
    }
  })
  const line = dial(await app.listen({ host: '127.0.0.1', port: 0 }))
  line.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(() => seen).toMatchObject([{ code: 'bad_request', status: 400 }])
})

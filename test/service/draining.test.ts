import { expect, test } from 'vitest'
import { createTestService } from '../support/index.js'
import { dial } from '../support/line.js'

const GET = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

test('a service that drains accepts no new connection, and answers requests on open ones before it closes them', async () => {
  const { service, clock, baseUrl: url } = await createTestService({ port: 0 })
  const open = dial(url)
  open.send(GET)
  await open.responses(1)
  expect(open.heard).toMatch(/200 OK/)
  expect(open.heard).not.toMatch(/connection: close/i)

  // Their first requests are on their way, or not.
  const [late, idle] = [dial(url), dial(url)]
  await Promise.all([late.connected(), idle.connected()])

  const closing = service.close({ drain: true })
  await expect.poll(() => fetch(url).then(String, () => 'refused')).toBe('refused')
  open.send(GET)
  await open.hungUp()
  expect(open.heard.match(/200 OK/g)).toHaveLength(2)
  expect(open.heard).toMatch(/connection: close/i)
  late.send(GET.replace('healthz', 'readyz'))
  await late.hungUp()
  expect(late.heard).toMatch(/503 Service Unavailable/)
  await clock.runUntil(closing)
  await idle.hungUp()
})

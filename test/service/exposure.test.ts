import { expect, test } from 'vitest'
import { isOpenToOthers } from '../../src/service/http/connections.js'

test.each([
  [undefined, undefined, [], false],
  ['127.0.0.1', undefined, [], false],
  ['localhost', undefined, [], false],
  ['::1', undefined, [], false],
  ['0.0.0.0', undefined, [], true],
  ['192.168.1.5', undefined, [], true],
  ['127.0.0.1', 'https://media.example.com', [], true],
  ['127.0.0.1', 'http://localhost:7878', [], true],
  ['127.0.0.1', undefined, ['127.0.0.1'], true],
])(
  'bound to %s with public URL %s and proxies %j, a service is open to others: %s',
  (host, publicUrl, trustedProxies, open) => {
    expect(isOpenToOthers({ host, publicUrl, trustedProxies, role: 'all' })).toBe(open)
  },
)

test.each(['worker', 'api'] as const)('a node with the role %s is part of a service for others', (role) => {
  const privately = { host: '127.0.0.1', publicUrl: undefined, trustedProxies: [] }
  expect(isOpenToOthers({ ...privately, role })).toBe(true)
})

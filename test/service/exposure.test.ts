import { expect, test } from 'vitest'
import { isOpenToOthers } from '../../src/service/http/connections.js'

test.each([
  [{}, false],
  [{ host: undefined }, false],
  [{ host: 'localhost' }, false],
  [{ host: '::1' }, false],
  [{ host: '0.0.0.0' }, true],
  [{ host: '192.168.1.5' }, true],
  [{ publicUrl: 'https://media.example.com' }, true],
  [{ publicUrl: 'http://localhost:7878' }, true],
  [{ trustedProxies: ['127.0.0.1'] }, true],
  [{ role: 'worker' }, true],
  [{ role: 'api' }, true],
] as const)('a service on 127.0.0.1, or with %j, is open to others: %s', (options, open) => {
  const alone = { host: '127.0.0.1', publicUrl: undefined, trustedProxies: [], role: 'all' } as const
  expect(isOpenToOthers({ ...alone, ...options })).toBe(open)
})

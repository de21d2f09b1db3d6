import { expect, it } from 'vitest'
import { parseBaseUrl } from '../../src/client/service-access.js'

it.each([
  ['https://api.test', 'https://api.test'],
  ['https://api.test/', 'https://api.test'],
  ['https://API.test:443/a/b//?#y', 'https://api.test/a/b'],
  ['http://127.0.0.1:7878', 'http://127.0.0.1:7878'],
  ['http://localhost:7878/', 'http://localhost:7878'],
  ['http://[::1]:7878', 'http://[::1]:7878'],
  // With the path of the interface, as it was copied.
  ['https://api.test/api/v1', 'https://api.test'],
  ['https://api.test/api/', 'https://api.test'],
  ['https://api.test/x/api/v1/runs', 'https://api.test/x'],
  ['https://api.test/v1', 'https://api.test/v1'],
])('the address of a service %s is read as %s', (text, address) => {
  expect(parseBaseUrl(text)).toBe(address)
})

it.each([
  '',
  'api.test',
  'ftp://api.test',
  'file:///etc',
  'https://',
  'https://user:pass@api.test',
  'https://user@api.test',
  'https://sk-secret@api.test:99999',
  'ftp://api.test?key=sk-secret',
  'https://api.test/v1?key=sk-secret',
])('the address of a service %j is refused', (text) => {
  expect(() => parseBaseUrl(text)).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2 }))
  expect(() => parseBaseUrl(text)).not.toThrow(/sk-secret/)
})

it.each(['http://api.test', 'http://127.0.0.1.api.test', 'http://0.0.0.0:1', 'http://192.168.0.1'])(
  'the address of a service %s is refused: the key would travel in clear',
  (text) => {
    expect(() => parseBaseUrl(text)).toThrow(expect.objectContaining({ code: 'insecure_url', exitCode: 2 }))
    expect(parseBaseUrl(text, { allowHttp: true })).toBe(text)
  },
)

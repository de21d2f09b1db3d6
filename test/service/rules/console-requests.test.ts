import { describe, expect, test } from 'vitest'
import {
  checkOwnOrigin,
  checkTransport,
  isPlainLoopback,
} from '../../../src/service/rules/console-requests.js'

const request = (
  origin: string | undefined,
  {
    scheme = 'https',
    host = 'media.example',
    fetchSite,
  }: { scheme?: string; host?: string; fetchSite?: string } = {},
) => ({ scheme, host, origin, fetchSite })

const overHttp = (origin: string | undefined, host: string) => request(origin, { scheme: 'http', host })

const PUBLIC = 'https://runs.example/prefix'

describe('the check of the origin of a change', () => {
  test.each([
    ['the host of the request', request('https://media.example'), true],
    ['that of the public URL', request('https://runs.example'), true],
    ['loopback with its port', overHttp('http://127.0.0.1:7878', '127.0.0.1:7878'), true],
    ['IPv6', overHttp('http://[::1]:7878', '[::1]:7878'), true],
    ['the default port, written', request('https://media.example', { host: 'media.example:443' }), true],
    ['another case of the host', request('https://media.example', { host: 'Media.Example' }), true],
    ['none', request(undefined), false],
    ['null', request('null'), false],
    ['another site', request('https://evil.example'), false],
    ['another scheme', request('http://media.example'), false],
    ['another port', request('https://media.example:8443'), false],
    ['a name that begins the same', request('https://media.example.evil.example'), false],
    ['another port of loopback', overHttp('http://127.0.0.1:9', '127.0.0.1:7878'), false],
    ['a host that is not valid', request('https://media.example', { host: 'a b' }), false],
    [
      'a request that the browser calls foreign',
      request('https://media.example', { fetchSite: 'cross-site' }),
      false,
    ],
    ['one that it calls its own', request('https://media.example', { fetchSite: 'same-origin' }), true],
  ])('%s', (_name, seen, isOwn) => {
    const check = () => checkOwnOrigin(seen, PUBLIC)
    if (isOwn) expect(check).not.toThrow()
    else expect(check).toThrow(expect.objectContaining({ status: 403, code: 'foreign_origin' }))
  })

  test('accepts only the host of the request without a public URL', () => {
    expect(() => checkOwnOrigin(request('https://media.example'), undefined)).not.toThrow()
    expect(() => checkOwnOrigin(request('https://runs.example'), undefined)).toThrow('another website')
  })
})

describe('the check of the transport', () => {
  test.each([
    ['loopback', overHttp('http://127.0.0.1:1', '127.0.0.1:1'), undefined, true, true],
    ['another host', overHttp('http://10.0.0.7:1', '10.0.0.7:1'), undefined, false, false],
    ['HTTPS', request('https://media.example'), undefined, false, true],
    ['HTTPS on loopback', request('https://localhost', { host: 'localhost' }), undefined, false, true],
    [
      'a TLS proxy that puts its own host',
      overHttp('https://runs.example', '127.0.0.1:1'),
      PUBLIC,
      false,
      true,
    ],
    ['a read behind it, which has no origin', overHttp(undefined, '127.0.0.1:1'), PUBLIC, false, true],
    ['a read on loopback', overHttp(undefined, '127.0.0.1:1'), undefined, true, true],
    ['a read of another host', overHttp(undefined, 'media.example'), undefined, false, true],
  ])('%s', (_name, seen, publicUrl, plain, allowed) => {
    expect(isPlainLoopback(seen, publicUrl)).toBe(plain)
    const check = () => checkTransport(seen, publicUrl)
    if (allowed) expect(check).not.toThrow()
    else expect(check).toThrow(expect.objectContaining({ status: 403, code: 'https_required' }))
  })
})

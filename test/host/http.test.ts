/** Which proxy the environment names, what is said of one that cannot be used, and which hosts are this machine. */
import { expect, it } from 'vitest'
import { findProxy, isLoopback, noProxy } from '../../src/host/http.js'

it.each<[string, string, Record<string, string>, string | undefined]>([
  ['an empty variable', 'https:', { HTTPS_PROXY: '', https_proxy: ' ' }, undefined],
  ['capitals', 'https:', { HTTPS_PROXY: 'http://p:1' }, 'http://p:1/'],
  ['small letters first', 'https:', { HTTPS_PROXY: 'http://p:1', https_proxy: 'http://q:1' }, 'http://q:1/'],
  ['HTTP_PROXY for https', 'https:', { HTTP_PROXY: 'http://p:1' }, 'http://p:1/'],
  ['HTTPS_PROXY is not for http', 'http:', { HTTPS_PROXY: 'http://p:1' }, undefined],
  ['an invalid one that is not used', 'http:', { HTTPS_PROXY: '"', HTTP_PROXY: 'http://p:1' }, 'http://p:1/'],
  ['no protocol', 'https:', { HTTPS_PROXY: 'p.example:3128' }, 'http://p.example:3128/'],
  ['a line end', 'https:', { HTTPS_PROXY: ' http://p:1\n' }, 'http://p:1/'],
  ['a password with escapes', 'https:', { HTTPS_PROXY: 'http://u:a%2Fb%25@p:1' }, 'http://u:a%2Fb%25@p:1/'],
])('the proxy of an address is found with %s', (_, protocol, env, expected) => {
  expect(findProxy(env, protocol)?.href).toBe(expected)
})

it.each([
  'http://user:secret%zz@p:1',
  'http://p:1/secret',
  'http://user:sec#ret@p:1',
  'socks5://user:secret@p:1',
])('the proxy of an address %s is refused, by the name of its variable and without its value', (value) => {
  for (const variable of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'])
    expect(() => findProxy({ [variable]: value }, 'https:')).toThrow(
      expect.objectContaining({
        name: 'RushesError',
        code: 'usage',
        exitCode: 2,
        message: `${variable} is not a valid proxy URL.`,
        hint: expect.not.stringMatching(/secret|sec|zz/),
      }),
    )
})

it('the proxy of an address leaves out what NO_PROXY names, in small letters first', () => {
  expect([noProxy({}), noProxy({ NO_PROXY: 'a' }), noProxy({ NO_PROXY: 'a', no_proxy: 'b' })]).toEqual([
    '',
    'a',
    'b',
  ])
})

it.each([
  ['LOCALHOST.', true],
  ['[::1]', true],
  ['127.0.0.1.evil.test', false],
])('the host %s is this machine: %s', (host, is) => {
  expect(isLoopback(host)).toBe(is)
})

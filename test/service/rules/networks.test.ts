import { expect, test } from 'vitest'
import {
  createNetworkMatcher,
  isPrivateHost,
  parseAddress,
  parseNetwork,
} from '../../../src/service/rules/networks.js'

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['::FFFF:0a00:0001', '10.0.0.1'],
  ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['2001:DB8:0::1', '2001:db8::1'],
  ['::1', '::1'],
  ['::7f00:1', '::7f00:1'],
  ['127.1', undefined],
  ['0x7f.0.0.1', undefined],
  ['10.0.0.1:80', undefined],
  ['[::1]', undefined],
  ['010.0.0.1', undefined],
  ['unknown', undefined],
  ['', undefined],
])('parses %s as the address %s', (text, plain) => {
  expect(parseAddress(text)?.toString()).toBe(plain)
})

test.each([
  ['10.0.0.0/8', ['10.0.0.0', 8, 'ipv4']],
  ['10.0.0.7', ['10.0.0.7', 32, 'ipv4']],
  ['0.0.0.0/0', ['0.0.0.0', 0, 'ipv4']],
  ['2001:db8::/32', ['2001:db8::', 32, 'ipv6']],
  ['::ffff:10.0.0.0/104', ['10.0.0.0', 8, 'ipv4']],
  ['10.0.0.0/33', undefined],
  ['2001:db8::/129', undefined],
  ['::ffff:10.0.0.0/90', undefined],
  ['10.0.0.0/', undefined],
  ['10.0.0.0/-1', undefined],
  ['10.0.0.0/8/8', undefined],
  ['10.0.0', undefined],
  ['example.com', undefined],
  ['none', undefined],
])('parses %s as the network %o', (text, network) => {
  const [address, prefix] = parseNetwork(text) ?? []
  expect(address && [address.toString(), prefix, address.kind()]).toEqual(network)
})

test.each([
  ['10.1.2.3', ['10.0.0.0/8'], true],
  ['::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['11.1.2.3', ['10.0.0.0/8'], false],
  ['11.1.2.3', ['10.0.0.0/8', '11.1.2.3'], true],
  ['2001:db8::5', ['2001:db8::/32'], true],
  ['2001:db9::5', ['2001:db8::/32'], false],
  ['::1', ['127.0.0.1'], false],
  ['10.1.2.3', ['::/0'], false],
  ['10.1.2.3', ['0.0.0.0/0'], true],
  ['10.1.2.3', ['nonsense', '10.0.0.0/33', '10.1.2.3'], true],
  ['10.1.2.3', ['10.99.0.0/8'], true],
  ['10.128.0.0', ['10.0.0.0/9'], false],
  ['fe80::1%eth0', ['fe80::/10'], true],
  ['nobody', ['0.0.0.0/0', '::/0'], false],
  ['10.1.2.3', [], false],
])('matches %s against the networks %o: %s', (address, networks, isIn) => {
  expect(createNetworkMatcher(networks)(address)).toBe(isIn)
})

test.each([
  ...[
    '127.0.0.1',
    '[::1]',
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.9',
  ],
  ...[
    '169.254.1.1',
    '100.64.0.1',
    '[fd00::1]',
    '[fe80::1]',
    '[::ffff:10.0.0.1]',
    'sd-server',
    'gpu.local',
    'a.b.internal',
  ],
])('%s is certainly on this machine or in a private network', (host) => {
  expect(isPrivateHost(host)).toBe(true)
})

test.each([
  ...[
    'api.openai.com',
    'queue.fal.run',
    '8.8.8.8',
    '172.32.0.1',
    '[2001:db8::1]',
    '[2606:4700::1]',
    '0.0.0.0',
    '[::]',
  ],
  ...[
    'localhost.example.com',
    '127.0.0.1.example.com',
    'internal.io',
    'gpu.local.example.com',
    '[::ffff:8.8.8.8]',
  ],
])('%s may be public', (host) => {
  expect(isPrivateHost(host)).toBe(false)
})

import { expect, test } from 'vitest'
import {
  clientOf,
  createNetworkMatcher,
  isPrivateHost,
  isPublicAddress,
} from '../../../src/service/rules/networks.js'

test.each([
  ['10.1.2.3', ['10.0.0.0/8'], true],
  ['::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['11.1.2.3', ['10.0.0.0/8'], false],
  ['2001:db8::5', ['2001:db8::/32'], true],
  ['2001:db9::5', ['2001:db8::/32'], false],
  ['::1', ['127.0.0.1'], false],
  ['10.1.2.3', ['::/0'], false],
  ['10.1.2.3', ['nonsense', '10.0.0.0/33', '10.1.2.3'], true],
  ['10.1.2.3', ['0.0.0.0/0'], true],
  // Networks that are not valid, and addresses as only some programs read them.
  ['10.0.0.0', ['10.0.0.0/33', '10.0.0.0/', '::ffff:10.0.0.0/90', 'example.com'], false],
  ['2001:db8::', ['2001:db8::/129'], false],
  ['127.1', ['0.0.0.0/0'], false],
  ['10.1.2.3:80', ['0.0.0.0/0'], false],
  ['010.1.2.3', ['0.0.0.0/0'], false],
  ['[::1]', ['::/0'], false],
  ['', ['0.0.0.0/0'], false],
  ['fe80::1%eth0', ['fe80::/10'], true],
  ['nobody', ['0.0.0.0/0', '::/0'], false],
])('matches %s against the networks %o: %s', (address, networks, isIn) => {
  expect(createNetworkMatcher(networks)(address)).toBe(isIn)
})

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['2001:db8::1:2:3:4%eth0', '2001:db8::/64'],
  ['somebody', 'somebody'],
])('counts %s as the client %s', (address, client) => expect(clientOf(address)).toBe(client))

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

test.each([
  [
    'the first and last of public networks',
    true,
    [
      ...['8.8.8.8', '172.15.255.255', '172.32.0.1', '100.63.255.255', '100.128.0.0', '198.17.255.255'],
      ...['198.20.0.0', '223.255.255.255', '2606:4700::1111', '2001:200::1'],
      ...['::ffff:8.8.8.8', '::ffff:808:808'],
    ],
  ],
  ['this network', false, ['0.0.0.0', '0.255.255.255', '::']],
  [
    'private',
    false,
    ['10.1.2.3', '172.16.0.0', '172.31.0.1', '192.168.1.1', 'fec0::1', 'fc00::1', 'fd00::1'],
  ],
  ['shared by carriers', false, ['100.64.0.1', '100.127.255.255']],
  ['loopback', false, ['127.9.9.9', '::1']],
  ['link-local', false, ['169.254.169.254', 'fe80::1', 'fe80::1%eth0']],
  ['protocol assignments and relays', false, ['192.0.0.1', '192.88.99.1']],
  ['documentation', false, ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1']],
  ['benchmarks', false, ['198.18.0.1', '198.19.255.255', '2001:2::1']],
  ['multicast, reserved and broadcast', false, ['224.0.0.1', '240.0.0.1', '255.255.255.255', 'ff02::1']],
  ['IPv4 that is mapped', false, ['::ffff:10.0.0.1', '::ffff:7f00:1']],
  ['IPv4 that is compatible or translated', false, ['::7f00:1', '::127.0.0.1', '::ffff:0:7f00:1']],
  [
    'IPv4 in NAT64, 6to4 and Teredo',
    false,
    ['64:ff9b::a00:1', '64:ff9b:1::a00:1', '2002:7f00:1::', '2001::1'],
  ],
  ['discard, ORCHID, segment routing', false, ['100::1', '2001:10::1', '2001:20::1', '5f00::1']],
  ['what has not been given to anybody', false, ['4000::1', '1fff::1']],
  ['not an address', false, ['nonsense', '127.1', '']],
])('addresses for %s count as public: %s', (_what, isPublic, addresses) => {
  expect(addresses.filter((address) => isPublicAddress(address) !== isPublic)).toEqual([])
})

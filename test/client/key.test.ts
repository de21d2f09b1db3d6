/** The key goes to its own origin, and is seen nowhere else. */
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { withKey } from '../../src/client/requests.js'
import { wait } from '../../src/runs/wait.js'
import { createManualClock } from '../support/index.js'
import { createBench, createWire, KEY, lost, problem, rejection, type Step, unconnected } from './wire.js'

const everythingIn = (thing: unknown): string =>
  `${inspect(thing, { depth: Number.POSITIVE_INFINITY, showHidden: true })}${JSON.stringify(thing)}`

it('the key goes with every request to the service', async () => {
  const { client, clock, requests } = createBench([
    { status: 201, body: { id: 'r1' } },
    { status: 302, headers: { location: '/elsewhere' } },
    { status: 200, body: { status: 'queued' } },
  ])
  await clock.runUntil(client.create({ model: 'a/b', input: {} }))
  await clock.runUntil(client.get('r1'))
  expect(requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(`Bearer ${KEY}`))
})

it.each([
  'https://evil.test/',
  'http://api.test/',
  'https://api.test:8443/',
  'https://sub.api.test/',
  'https://api.test.evil.test/',
  'https://api.test@evil.test/',
])('the key does not go to %s', async (address) => {
  const wire = createWire(createManualClock(), [{ status: 200 }])
  const send = withKey(KEY, 'https://api.test')(wire.fetch)
  await send({ method: 'GET', url: new URL(address), headers: { accept: '*/*' } })
  expect(everythingIn(wire.requests)).not.toContain(KEY)
})

const ends: [string, Step][] = [
  ['a refusal', problem(401, 'invalid_api_key')],
  ['an exhausted quota', problem(429, 'USAGE_EXCEEDED')],
  ['a rate limit', problem(429, 'RATE_LIMITED')],
  ['a broken service', problem(500, undefined)],
  ['no connection', unconnected()],
  ['a lost answer', lost()],
  ['a redirect', { status: 302, headers: { location: 'https://evil.test/' } }],
  ['nonsense', { status: 200, body: 'x' }],
  ['a body that is cut', { status: 201, cut: true }],
]
it.each(ends)('the key stays out of errors and traces: %s', async (_, step) => {
  const { client, clock, lines } = createBench([step], { forever: true })
  const errors = [
    await rejection(clock.runUntil(client.create({ model: 'a/b', input: {} }))),
    await rejection(clock.runUntil(client.get('r1'))),
    await rejection(clock.runUntil(wait({ client, clock, random: () => 0 }, 'r1'))),
  ]
  expect(lines.length).toBeGreaterThan(2)
  for (const thing of [...errors, ...lines]) expect(everythingIn(thing)).not.toContain(KEY)
})

it('the trace has one line for each request and one for its response', async () => {
  const { client, clock, lines } = createBench([
    unconnected(),
    { status: 201, body: { id: 'r1' } },
    { status: 200, body: { status: 'queued' } },
  ])
  await clock.runUntil(client.create({ model: 'a/b', input: {} }))
  await clock.runUntil(client.get('r 1'))
  expect(lines).toEqual([
    '> POST https://api.test/prefix/api/v1/runs (26 bytes)',
    '! the connection was refused /prefix/api/v1/runs (0 ms)',
    '> POST https://api.test/prefix/api/v1/runs (26 bytes)',
    '< 201 /prefix/api/v1/runs (0 ms)',
    '> GET https://api.test/prefix/api/v1/runs/r%201',
    '< 200 /prefix/api/v1/runs/r%201 (0 ms)',
  ])
})

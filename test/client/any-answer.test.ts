/** Whatever a server says, it is an answer or a RushesError with a documented exit code, and nothing else. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ApiClient } from '../../src/client/index.js'
import { EXIT, OWN_CODES, RushesError } from '../../src/errors.js'
import { isRunId } from '../../src/protocol/id.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import { FAILURE_STATUSES, type RunState } from '../../src/protocol/run-state.js'
import { printable, printableJson } from '../../src/protocol/text.js'
import { anyCharacter } from '../support/any-character.js'
import { PROOF } from '../support/proof.js'
import { createBench, lost, type Step, unconnected } from './wire.js'

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
const numRuns = 100 * PROOF
const DOCUMENTED: readonly number[] = Object.values(EXIT)

const word = fc.oneof(
  fc.constantFrom(...Object.keys(PROBLEMS), ...Object.keys(OWN_CODES), ...FAILURE_STATUSES, 'succeeded'),
  fc.constantFrom('\u001b]0;title\u0007', '\u009b31m', '', ' ', '__proto__', 'toString'),
  fc.string({ unit: anyCharacter }),
)
// Those of fast-check take a second to build.
const webPath = word.map((text) => `/${encodeURIComponent(text)}`)
const webUrl = webPath.map((path) => `https://files.test${path}`)
const value = fc.oneof(word, fc.jsonValue(), fc.constantFrom(null, 0, -0, 1e300, 2 ** 53, true))
const urls = fc.oneof(value, fc.array(fc.oneof(word, webUrl, fc.constant('ftp://x/y'))))

const bodyObject = fc.record(
  {
    id: value,
    run_id: value,
    run: fc.oneof(value, fc.record({ id: value })),
    status: value,
    output: fc.oneof(value, fc.record({ urls })),
    message: value,
    created_at: value,
    error: fc.oneof(value, fc.record({ code: value, message: value }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
)

const body = fc.oneof(
  { weight: 5, arbitrary: bodyObject.map((object) => Buffer.from(JSON.stringify(object))) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter }).map((text) => Buffer.from(text)) },
  fc.constantFrom(
    Buffer.from([0x22, 0xc3, 0x28, 0xff, 0xfe, 0x22]),
    Buffer.from('['.repeat(100_000)),
    undefined,
  ),
  word.map((text) => Buffer.from(JSON.stringify({ error: text.repeat(2_000) }))),
)

const status = fc.oneof(
  fc.constantFrom(200, 201, 202, 204, 301, 302, 400, 401, 402, 403, 404, 429, 500, 503),
  fc.integer({ min: 100, max: 999 }),
)

const location = fc.oneof(word, webUrl, webPath, fc.constantFrom('%', '//', 'http://[', '/%ff', '/a%00b'))
const wish = fc.oneof(word, fc.constantFrom('1', '-1', '1e9', 'Infinity', 'NaN', '9'.repeat(400)))
const headers = fc.record({ location, 'retry-after': wish }, { requiredKeys: [] })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: fc.record({ status, body, headers, cut: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constantFrom(lost('\u001b[2J'), unconnected('\u0007')) },
)

/** A property of its own rank: what ends badly is a RushesError, and can be printed. */
function expectDocumented(error: unknown): void {
  expect(error).toBeInstanceOf(RushesError)
  if (!(error instanceof RushesError)) return
  expect(DOCUMENTED).toContain(error.exitCode)
  expect([EXIT.ok, EXIT.bug]).not.toContain(error.exitCode)
  expect(error.code).not.toBe('')
  for (const text of [error.message, error.code, error.hint ?? ''])
    expect(printable(text)).not.toMatch(CONTROL)
  expect(printableJson({ code: error.code, message: error.message })).not.toMatch(CONTROL)
}

const immediate = { acquire: async () => ({ settle() {} }), holdBack() {}, load: () => 0, spareForCreates: 0 }

/** The end of a request to a service that answers so, and the number of its requests. The last answer repeats. */
async function endOf(steps: readonly Step[], ask: (client: ApiClient) => Promise<object>, minutes: number) {
  const { client, clock, requests } = createBench(steps, { forever: true, limiter: immediate })
  const ended = ask(client).then(
    (answer) => ({ answer }),
    (error: unknown) => ({ error }),
  )
  await clock.advance(minutes * 60_000)
  return { ...(await ended), requests: requests.length }
}

const steps = fc.array(step, { minLength: 1, maxLength: 3 })

it('any answer to a create is a run with an id, or a documented error', () =>
  fc.assert(
    fc.asyncProperty(steps, async (answers) => {
      // No create takes longer than its six retries of a minute.
      const end = await endOf(answers, (client) => client.create({ model: 'a/b', input: {} }), 6)
      if ('answer' in end) expect(end.answer).toMatchObject({ id: expect.toSatisfy(isRunId) })
      else expectDocumented(end.error)
      expect(end.requests).toBeLessThanOrEqual(6)
    }),
    { numRuns },
  ))

it('any answer to a look is a state, or a documented error of that run', () =>
  fc.assert(
    fc.asyncProperty(steps, async (answers) => {
      const end = await endOf(answers, (client) => client.get('r1'), 4)
      if ('answer' in end) {
        const { phase, urls, withoutUrls } = end.answer as RunState
        expect(['running', 'failed', 'succeeded']).toContain(phase)
        expect(urls.length > 0).toBe(phase === 'succeeded' && withoutUrls === undefined)
      } else {
        expectDocumented(end.error)
        expect(end.error).toMatchObject({ runId: 'r1' })
      }
    }),
    { numRuns, examples: [[[{ status: 200, body: Buffer.from('{"status":"succeeded"}') }]]] },
  ))

/**
 * Whatever is sent, the service answers in the interface's shape, without a 5xx and without a word of its inside, and
 * is there for the next request.
 */
import { connect } from 'node:net'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { anyCharacter } from '../support/any-character.js'
import { ask, createTestService, type TestService } from '../support/index.js'
import { createHead } from '../support/line.js'
import { PROOF } from '../support/proof.js'

const numRuns = 40 * PROOF

const RUNS = '/api/v1/runs'
const STACK = /\n\s+at |node_modules|\.ts:\d|\.js:\d|SQLITE/

function expectSound(status: number, text: string): void {
  expect(status).toBeGreaterThanOrEqual(200)
  expect(status).toBeLessThan(500)
  expect(text).not.toMatch(STACK)
  if (status >= 400 && text !== '')
    expect(JSON.parse(text)).toEqual({ error: { message: expect.any(String), code: expect.any(String) } })
}

/** A moment later the key has its whole limit again. */
const asOften = async (service: TestService) => service.clock.advance(RUNS_LIMIT.windowMs)

const ODD_WORDS = [
  '__proto__',
  'constructor',
  '..',
  '%2e%2e%2f',
  '%00',
  'null',
  '\u2028',
  '💥',
  'a'.repeat(9_000),
]
const word = fc.oneof(fc.string(), fc.string({ unit: anyCharacter }), fc.constantFrom(...ODD_WORDS))
const PATHS = `${RUNS} ${RUNS}/ / /healthz /readyz /outputs/ ${RUNS}//x /api/v1 /% /%ff/%c0`.split(' ')
const path = fc.oneof(
  word.map((id) => `${RUNS}/${encodeURIComponent(id.isWellFormed() ? id : 'lone')}`),
  fc
    .tuple(word, word)
    .map((parts) => `/outputs/${parts.map((each) => encodeURIComponent(each.toWellFormed())).join('/')}`),
  fc.constantFrom(...PATHS),
)
const name = fc.constantFrom(
  ...['model', 'input', 'prompt', 'image_urls', 'aspect_ratio', 'quality', 'duration', 'toString'],
)
const MEANT = [...Object.values(LOCAL_MODELS), 'data:;base64,%zz', 'high', '16:9', '10']
const dataUrl = fc
  .tuple(fc.constantFrom('data:', 'data:image/png;base64,'), word)
  .map((parts) => parts.join(''))
const value = fc.oneof(
  ...[word, fc.constantFrom(...MEANT), dataUrl, fc.array(fc.oneof(word, dataUrl)), fc.jsonValue()],
)
/** With the names and values that mean something. */
const meaningful = fc.dictionary(fc.oneof(name, word), value)
const create = fc.record({
  model: fc.oneof(fc.constantFrom(...Object.values(LOCAL_MODELS)), fc.jsonValue()),
  input: fc.oneof(meaningful, fc.jsonValue()),
})
const body = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.json(),
  fc.oneof(meaningful, create).map((each) => JSON.stringify(each)),
)
const contentType = fc.constantFrom(
  ...['application/json', 'text/plain', ';;;', 'multipart/form-data', 'application/json; charset=x'],
)
const authorization = (key: string) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(`Bearer ${key}`) },
    fc.constantFrom(
      '',
      'Bearer',
      'Basic eDp5',
      `bearer ${key} `,
      'Bearer \u00ff',
      `Bearer ${'x'.repeat(5_000)}`,
    ),
  )

test('answers any body, path and key without revealing internal errors', async () => {
  const service = await createTestService()
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET' as const, 'POST' as const),
      path,
      body,
      authorization(service.apiKey),
      async (method, where, what, who) => {
        await asOften(service)
        const answer = await ask(service, method, where, what, { authorization: who })
        expectSound(
          answer.status,
          typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body),
        )
      },
    ),
    { numRuns },
  )
  await asOften(service)
  const orders = fc.asyncProperty(body, contentType, async (what, type) => {
    await asOften(service)
    const answer = await ask(service, 'POST', RUNS, what, { headers: { 'content-type': type } })
    expect([201, 400]).toContain(answer.status)
  })
  await fc.assert(orders, { numRuns })
  expect(service.complaints).toEqual([])
  expect((await ask(service, 'GET', '/readyz')).status).toBe(200)
})

test('many unfinished requests do not delay other clients', async () => {
  const service = await createTestService({ port: 0 })
  const { baseUrl, port } = service
  let ended = 0
  const held = Array.from({ length: 200 }, (_, at) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.on('data', () => ended++).on('close', () => ended++)
    socket.write(createHead(service))
    // As many as the rate limit allows.
    if (at % 10 === 0) socket.write('Content-Length: 900\r\n\r\n{"model"')
    return socket
  })
  onTestFinished(() => {
    for (const socket of held) socket.destroy()
  })
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
  // The service did not wait for the end of any of them.
  expect(ended).toBe(0)
})

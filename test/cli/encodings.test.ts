/** Answers that a service, a gateway or a proxy compressed although nobody asked for it, as whole command lines. */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { EXIT } from '../../src/errors.js'
import { createHome, type Scripted, SET } from '../support/index.js'

const gzipped = (body: object, status: number): Scripted => ({
  status,
  body: gzipSync(JSON.stringify(body)),
  headers: { 'content-encoding': 'gzip' },
})
const problem = (code: string, status: number) => gzipped({ error: { code, message: code } }, status)

/** Runs a command against a service that always gives this answer. */
async function answered(line: string, answer: Scripted) {
  const env = { ...SET, RUSHES_API_KEY: 'rk_0123456789' }
  const { run, requests, rows } = createHome({ answers: [answer], env })
  return { ...(await run(line)), requests, rows: rows() }
}

const RUN = 'run image "a fox" --no-wait'

it('a compressed response with the code USAGE_EXCEEDED ends a run with exit 5 after one request', async () => {
  const { code, requests } = await answered(RUN, problem('USAGE_EXCEEDED', 429))
  expect([code, requests.length]).toEqual([EXIT.account, 1])
})

it('a compressed 201 that breaks off after the id gives the run', async () => {
  // Long enough that the id is decoded before the end.
  const body = { id: 'run_1', note: Array.from({ length: 3_000 }, (_, at) => at * 7_919) }
  const whole = gzipped(body, 201)
  const torn = { ...whole, body: (whole.body as Buffer).subarray(0, -500), cut: true }
  expect(await answered(RUN, torn)).toMatchObject({ code: EXIT.ok, stdout: 'run_1\n' })
})

const bytes = gzipSync(JSON.stringify({ id: 'run_1', text: 'x'.repeat(300) }))

it.each<[string, Scripted, string]>([
  [
    'an unknown encoding',
    { status: 201, body: bytes, headers: { 'content-encoding': 'compress' } },
    'the response has an unsupported encoding, although none was requested',
  ],
  ['no encoding is named', { status: 201, body: bytes }, 'the response contains no run id'],
  ['NUL in a text', { status: 201, body: 'abc\0def' }, 'the response contains no run id'],
])(
  'a 201 that cannot be read is in the journal and in the message as base64: %s',
  async (_, answer, reason) => {
    const { code, stderr, rows } = await answered(RUN, answer)
    const kept = `base64:${Buffer.from(answer.body as Buffer).toString('base64')}`
    expect(code).toBe(EXIT.outcomeUnknown)
    expect(stderr.replace(/\s+/g, ' ')).toContain(reason)
    expect(stderr.replace(/\s+/g, '')).toContain(kept)
    expect(rows[0]?.answer).toEqual({ status: 201, text: kept })
  },
)

it('an API key in a 201 that cannot be read is redacted', async () => {
  const { stderr, rows } = await answered(RUN, { status: 201, body: '\0 rk_0123456789 \0' })
  const kept = Buffer.from('\0 [API key] \0').toString('base64')
  expect(rows[0]?.answer?.text).toBe(`base64:${kept}`)
  expect(stderr).toContain(kept)
})

/** What all engines with servers share: patience, the words of an error, and results as files of a run. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createUpstream } from '../../../src/service/engines/upstream/index.js'
import { saveBase64 } from '../../../src/service/engines/upstream/outputs.js'
import { failedAnswer, isFinalAnswer } from '../../../src/service/engines/upstream/upstream-error.js'
import { createManualClock, responseOf } from '../../support/index.js'
import { jobOf } from '../../support/model-servers/engine.js'

test('a request says once that it waits, and gives up after ten minutes of 503 with the words of the server', async () => {
  const clock = createManualClock()
  let sent = 0
  const lines: string[] = []
  const warn = (line: string) => void lines.push(line)
  const fetch = async () => {
    sent++
    return responseOf({ status: 503, body: { error: { message: 'Loading model' } } })
  }
  const upstream = createUpstream({ url: new URL('http://127.0.0.1/v1'), parts: { clock, fetch, warn } })
  const request = { method: 'POST', path: 'images' } as const
  await expect(clock.runUntil(upstream.value(request, new AbortController().signal))).rejects.toThrow(
    "The model's server was not ready within 10 minutes. The model's server answered 503: Loading model",
  )
  expect(clock.monotonic()).toBeGreaterThan(580_000)
  expect(clock.monotonic()).toBeLessThanOrEqual(600_000)
  expect(sent).toBeGreaterThan(40)
  expect(lines).toEqual(["http://127.0.0.1: The model's server answered 503: Loading model. Still trying."])
})

describe('an answer with an error status', () => {
  test.each([
    ['an object', { error: { message: 'CUDA out of memory' } }, ': CUDA out of memory'],
    ['a text', { error: 'generation failed' }, ': generation failed'],
    ['a code and a message', { error: 'server_error', message: 'bad type' }, ': bad type'],
    [
      'a name and its errors',
      { error: 'OutOfMemoryError', detail: '', body: '', errors: 'CUDA out of memory.' },
      ': CUDA out of memory.',
    ],
    ['a detail', { detail: 'No image' }, ': No image'],
    [
      'a list of details',
      { detail: [{ loc: ['body', 'size'], msg: 'field required' }] },
      ': body.size: field required',
    ],
    ['a list with places that are no names', { detail: [{ loc: [{ toString: 1 }], msg: 'bad' }] }, ': bad'],
    ['plain text', 'Internal Server Error', ': Internal Server Error'],
    ['nothing', '', ' without a message.'],
    ['a page', '<html><h1>nginx</h1></html>', ' with a web page.'],
  ])('is described by the words of its server: %s', (_, body, expected) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const { message, status } = failedAnswer(500, undefined, text, (each) => each)
    expect({ message, status }).toEqual({
      message: `The model's server answered 500${expected}`,
      status: 500,
    })
  })

  test.each(['code', 'type'])('is final when the account has no credit left: %s', (name) => {
    const request = { method: 'POST', url: new URL('http://127.0.0.1/v1/images'), headers: {} } as const
    const of = (code: string) => ({ error: { message: 'You exceeded your current quota', [name]: code } })
    expect(isFinalAnswer(of('insufficient_quota'), request)).toBe(true)
    expect(isFinalAnswer(of('rate_limit_exceeded'), request)).toBe(false)
  })
})

const PICTURE = randomBytes(200_000)
const BASE64 = PICTURE.toString('base64')

test.each([
  ['plain', BASE64],
  ['with a prefix', `data:image/png;base64,${BASE64}`],
  ['in lines', BASE64.replace(/.{76}/g, '$&\r\n')],
  ['without padding', BASE64.replace(/=+$/, '')],
])('base64 goes decoded into a file, which is hidden until it is published: %s', async (_, text) => {
  const job = jobOf()
  const path = await saveBase64(text, job)
  expect(readFileSync(path).equals(PICTURE)).toBe(true)
  expect(readdirSync(job.folder).filter((name) => !name.startsWith('.'))).toEqual([])
})

test.each([
  ['another character', `${BASE64.slice(0, 150_000)}*${BASE64}`, 'not valid base64'],
  ['padding in the middle', `${BASE64.slice(0, 150_000)}====${BASE64}`, 'not valid base64'],
  ['one character left over', `${BASE64.replace(/=+$/, '').slice(0, 150_000)}A`, 'not valid base64'],
  ['nothing', '', 'an empty result'],
  ['no text', 7, 'no result'],
])('a result that is not whole fails, and leaves no file: %s', async (_, text, expected) => {
  const job = jobOf()
  await expect(saveBase64(text, job)).rejects.toThrow(expected)
  expect(readdirSync(job.folder)).toEqual([])
})

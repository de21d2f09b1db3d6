import { describe, expect, test } from 'vitest'
import { failedAnswer, isFinalAnswer } from '../../../src/service/engines/upstream/upstream-error.js'

describe('an answer with an error status', () => {
  test.each<[name: string, body: unknown, expected: string]>([
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

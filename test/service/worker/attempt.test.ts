import { expect, test } from 'vitest'
import { failureOf } from '../../../src/service/worker/attempt.js'

test('a system error is reported by its code, without the paths of its message', () => {
  const error = Object.assign(new Error("ENOSPC: no space left, write '/secret/path'"), {
    code: 'ENOSPC',
    syscall: 'write',
  })
  expect(failureOf(error)).toEqual({
    code: 'render_failed',
    message: 'The service could not write the output files (ENOSPC).',
  })
})

test.each([
  [new Error('the model refused'), 'the model refused'],
  [new Error('out of\nmemory\u001b[2J\u202e\u0000'), 'out of\nmemory[2J'],
  [new Error(' \u0007 '), 'The engine failed without a message.'],
  [new Error('x'.repeat(9_000)), expect.stringMatching(/^x+…?/)],
])('an error of the engine is reported by its message, without control characters', (error, message) => {
  const failure = failureOf(error)
  expect(failure).toEqual({ code: 'render_failed', message })
  expect(failure.message.length).toBeLessThanOrEqual(2_500)
})

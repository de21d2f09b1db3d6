import { expect, test } from 'vitest'
import { refusalOf } from '../../../src/service/http/error-responses.js'
import { DatabaseUnavailable } from '../../../src/service/store/unavailable.js'

test.each([
  [new DatabaseUnavailable(new Error('connect ECONNREFUSED 10.0.0.7:5432')), 503, 'not_ready'],
  [Object.assign(new Error('locked'), { code: 'SQLITE_BUSY' }), 503, 'not_ready'],
  [new Error('a bug'), 500, 'internal_error'],
])('%s', (error, status, code) => {
  const refusal = refusalOf(error)
  expect(refusal).toMatchObject({ status, code })
  expect(refusal.message).not.toContain('10.0.0.7')
})

import { expect, test } from 'vitest'
import { StorageUnavailable } from '../../../src/service/files/contract.js'
import { refusalOf } from '../../../src/service/http/error-responses.js'
import { DatabaseUnavailable } from '../../../src/service/store/sql.js'

test.each<readonly [error: Error, status: number, code: string]>([
  [new DatabaseUnavailable(new Error('connect ECONNREFUSED 10.0.0.7:5432')), 503, 'not_ready'],
  [Object.assign(new Error('locked'), { code: 'SQLITE_BUSY' }), 503, 'not_ready'],
  ...['SQLITE_IOERR_READ', 'EIO', 'EMFILE'].map(
    (code) => [Object.assign(new Error(`${code}: 10.0.0.7`), { code }), 503, 'not_ready'] as const,
  ),
  [new StorageUnavailable('lstat: disk I/O error'), 503, 'not_ready'],
  [new Error('a bug'), 500, 'internal_error'],
])('%s', (error, status, code) => {
  const refusal = refusalOf(error)
  expect(refusal).toMatchObject({ status, code })
  expect(refusal.message).not.toContain('10.0.0.7')
})

test('the refusal of a change with an unknown outcome says that it may have been made', () => {
  const lost = new Error('Connection terminated')
  expect(refusalOf(new DatabaseUnavailable(lost, { isUnknown: true }))).toMatchObject({
    status: 503,
    message: 'The service is not ready. Its database cannot be reached. A change may have been made.',
  })
  expect(refusalOf(new DatabaseUnavailable(lost)).message).not.toContain('may have been made')
})

import { expect, test } from 'vitest'
import { StorageUnavailable } from '../../../src/service/files/contract.js'
import { asStorageError, describeProblem, isMissing } from '../../../src/service/files/s3-errors.js'

const answered = (name: string, httpStatusCode: number) =>
  Object.assign(new Error(`AWSAccessKeyId AKIDSECRET ${name}`), { name, $metadata: { httpStatusCode } })
const failed = (code: string, name = 'Error') => Object.assign(new Error(`connect ${code}`), { code, name })

test.each([
  ['a refused connection', failed('ECONNREFUSED'), 'connection refused', true],
  ['silence', failed('ETIMEDOUT', 'TimeoutError'), 'no answer in time', true],
  ['too many requests', answered('SlowDown', 503), 'SlowDown (503)', true],
  ['no bucket', answered('NoSuchBucket', 404), 'NoSuchBucket (404)', false],
  ['no credentials', failed('', 'CredentialsProviderError'), 'CredentialsProviderError', false],
  ['a certificate', failed('DEPTH_ZERO_SELF_SIGNED_CERT'), 'DEPTH_ZERO_SELF_SIGNED_CERT', false],
  ['a name that is no name', answered('<b>odd</b>\n', 400), 'an unknown error (400)', false],
])('%s', (_name, thrown, reason, isTemporary) => {
  expect(describeProblem(thrown)).toEqual({ reason, isTemporary })
})

test('an error of the storage names operation and reason, and quotes nothing of its response', () => {
  const error = asStorageError(answered('SignatureDoesNotMatch', 403), 'PutObject') as StorageUnavailable
  expect(error).toBeInstanceOf(StorageUnavailable)
  expect(error.message).toBe('--storage: PutObject: SignatureDoesNotMatch (403)')
  expect(error.cause).toBeUndefined()
  expect(error.stack).not.toContain('AKIDSECRET')
})

test('an error of a local file is passed on unchanged', () => {
  const error = Object.assign(new Error('ENOENT'), { code: 'ENOENT', path: '/tmp/x' })
  expect(asStorageError(error, 'Upload')).toBe(error)
})

test.each([
  // Of a HEAD, which has no body: the bucket may be missing.
  ['NotFound', false],
  ['NoSuchKey', true],
  ['NoSuchBucket', false],
  ['AccessDenied', false],
])('%s means that the object is missing: %s', (name, missing) => {
  expect(isMissing(answered(name, 404))).toBe(missing)
})

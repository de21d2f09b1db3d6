import { expect, test } from 'vitest'
import { StorageUnavailable } from '../../../src/service/files/contract.js'
import { asStorageError, describeProblem, isMissing } from '../../../src/service/files/s3-errors.js'

const answered = (name: string, httpStatusCode: number) =>
  Object.assign(new Error(`AWSAccessKeyId AKIDSECRET ${name}`), { name, $metadata: { httpStatusCode } })
const failed = (code: string, name = 'Error') => Object.assign(new Error(`connect ${code}`), { code, name })

test.each([
  ['a refused connection', failed('ECONNREFUSED'), 'connection refused', true, /AWS_ENDPOINT_URL_S3/],
  ['silence', failed('ETIMEDOUT', 'TimeoutError'), 'no answer in time', true, /network/],
  ['too many requests', answered('SlowDown', 503), 'SlowDown (503)', true, /bucket/],
  ['no bucket', answered('NoSuchBucket', 404), 'NoSuchBucket (404)', false, /Create the bucket/],
  ['no right, without a body', answered('403', 403), '403 (403)', false, /s3:ListBucket/],
  [
    'no credentials',
    failed('', 'CredentialsProviderError'),
    'no credentials were found',
    false,
    /AWS_PROFILE/,
  ],
  ['no TLS', failed('EPROTO'), 'TLS failed', false, /AWS_ENDPOINT_URL_S3/],
  ['a certificate', failed('DEPTH_ZERO_SELF_SIGNED_CERT'), 'DEPTH_ZERO_SELF_SIGNED_CERT', false, /EXTRA_CA/],
  ['a name that is no name', answered('<b>odd</b>\n', 400), 'an unknown error (400)', false, /bucket/],
])('%s', (_name, thrown, reason, isTemporary, hint) => {
  expect(describeProblem(thrown)).toEqual({ reason, isTemporary, hint: expect.stringMatching(hint) })
})

test('an error of the storage names operation and reason, and quotes nothing of its response', () => {
  const error = asStorageError(answered('SignatureDoesNotMatch', 403), 'PutObject') as StorageUnavailable
  expect(error).toBeInstanceOf(StorageUnavailable)
  expect(error.message).toBe('PutObject: SignatureDoesNotMatch (403)')
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

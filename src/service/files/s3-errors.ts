/**
 * Explains errors of the S3 client. Does not repeat the client's messages and fields: they can contain a signature, a
 * key id or the URL of a file.
 */
import { describeReason } from '../../host/system-error.js'
import { StorageUnavailable } from './contract.js'

/** The system's error codes for a storage that is temporarily unreachable. */
const NETWORK = /^(EAI_AGAIN|ECONN\w+|EHOST\w+|ENET\w+|ENOTFOUND|EPIPE|ETIMEDOUT)$/

const REASONS: Readonly<Record<string, string>> = {
  CredentialsProviderError: 'no credentials were found',
  EPROTO: 'TLS failed',
}

const KEYS = 'Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.'
const REGION = 'Set AWS_REGION to the region of the bucket.'
const SESSION = 'The session of these credentials has ended: sign in again, or renew them.'

const HINTS: Readonly<Record<string, string>> = {
  AccessDenied:
    'The credentials need s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and ' +
    's3:AbortMultipartUpload on its objects.',
  AuthorizationHeaderMalformed: REGION,
  CredentialsProviderError:
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or start the service where it has a role.',
  ExpiredToken: SESSION,
  IllegalLocationConstraintException: REGION,
  InvalidAccessKeyId: KEYS,
  NoSuchBucket: 'Create the bucket, or check its name and AWS_ENDPOINT_URL_S3.',
  PermanentRedirect: REGION,
  RequestTimeTooSkewed: 'Set the clock of this machine.',
  SignatureDoesNotMatch: KEYS,
  TokenProviderError: SESSION,
}

const CERTIFICATE_HINT =
  'Its TLS certificate is not trusted or not valid. For a certificate authority of your own, set NODE_EXTRA_CA_CERTS.'

interface StorageProblem {
  /** For example, `SlowDown (503)` or `the connection was refused`. */
  readonly reason: string
  /** Whether a retry may succeed. If false, the settings or the storage must be changed. */
  readonly isTemporary: boolean
  readonly hint: string
}

interface Thrown {
  readonly name?: unknown
  readonly code?: unknown
  readonly path?: unknown
  readonly errors?: readonly unknown[]
  readonly $metadata?: { readonly httpStatusCode?: number }
}

export function describeProblem(thrown: unknown): StorageProblem {
  const { name, code, errors, $metadata } = (thrown ?? {}) as Thrown
  // If all addresses of a host fail, the error is an AggregateError.
  if (errors !== undefined && errors.length > 0) return describeProblem(errors[0])
  const status = $metadata?.httpStatusCode
  const isTimeout = name === 'TimeoutError' || name === 'AbortError'
  if (isTimeout || NETWORK.test(String(code)))
    return {
      reason: isTimeout ? 'no answer in time' : describeReason(thrown),
      isTemporary: true,
      hint: 'Check AWS_ENDPOINT_URL_S3, AWS_REGION and the network.',
    }
  const errorName = plainName((status === undefined && code) || name)
  return {
    reason: status === undefined ? (REASONS[errorName] ?? errorName) : `${errorName} (${status})`,
    isTemporary: status !== undefined && (status >= 500 || status === 408 || status === 429),
    hint:
      HINTS[errorName] ??
      (status === 403 ? (HINTS.AccessDenied ?? '') : undefined) ??
      (/CERT|SIGNATURE|ISSUER/.test(errorName)
        ? CERTIFICATE_HINT
        : 'Check the name of the bucket, the credentials, AWS_REGION and AWS_ENDPOINT_URL_S3.'),
  }
}

/** Returns the name if it has the form of an error name. The storage sends it, so it can be any text. */
const plainName = (name: unknown): string =>
  typeof name === 'string' && /^[\w.-]{1,80}$/.test(name) ? name : 'an unknown error'

/** Whether the response is a 404, which can be about the object or the bucket, or come from a proxy. */
export const isNotFound = (thrown: unknown): boolean =>
  (thrown as Thrown | undefined)?.$metadata?.httpStatusCode === 404

/** Whether the storage says that the bucket exists and the object does not. */
export const isMissing = (thrown: unknown): boolean => (thrown as Thrown | undefined)?.name === 'NoSuchKey'

/** Whether the error is about a file on this machine. */
const isFileError = (thrown: unknown): boolean => typeof (thrown as Thrown | undefined)?.path === 'string'

/**
 * Converts an error of the storage to `StorageUnavailable`, so that the operation is retried: while the service runs,
 * an operator can fix every cause.
 */
export function asStorageError(thrown: unknown, operation: string): unknown {
  if (thrown instanceof StorageUnavailable || isFileError(thrown)) return thrown
  return new StorageUnavailable(`${operation}: ${describeProblem(thrown).reason}`)
}

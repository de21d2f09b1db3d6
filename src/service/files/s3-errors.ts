/**
 * Explains errors of the S3 client. Does not repeat the client's messages and fields: they can contain a signature, a
 * key id or the URL of a file.
 */
import { describeReason } from '../../host/system-error.js'
import { StorageUnavailable } from './contract.js'

/** The system's error codes for a storage that is temporarily unreachable. */
const NETWORK = /^(EAI_AGAIN|ECONN\w+|EHOST\w+|ENET\w+|ENOTFOUND|EPIPE|ETIMEDOUT)$/

interface StorageProblem {
  /** For example, `SlowDown (503)` or `the connection was refused`. */
  readonly reason: string
  /** Whether a retry may succeed. If false, the settings or the storage must be changed. */
  readonly isTemporary: boolean
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
  if (name === 'TimeoutError' || name === 'AbortError')
    return { reason: 'no answer in time', isTemporary: true }
  if (NETWORK.test(String(code))) return { reason: describeReason(thrown), isTemporary: true }
  const errorName = plainName((status === undefined && code) || name)
  return {
    reason: status === undefined ? errorName : `${errorName} (${status})`,
    isTemporary: status !== undefined && (status >= 500 || status === 408 || status === 429),
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
  return new StorageUnavailable(`--storage: ${operation}: ${describeProblem(thrown).reason}`)
}

/** Errors between the threads of the service: an error that is sent loses its class and its own properties. */
import { messageOf } from '../errors.js'
import { errorCode } from '../host/system-error.js'
import { Refusal, type RefusalCode } from './rules/refusal.js'

export type SentError =
  | { readonly refusal: RefusalCode; readonly detail: string | undefined }
  | { readonly message: string; readonly code: string | undefined }

export function sentError(error: unknown): SentError {
  if (error instanceof Refusal) return { refusal: error.code, detail: error.detail }
  return { message: messageOf(error), code: errorCode(error) }
}

export function receivedError(error: SentError): Error {
  if ('refusal' in error) return new Refusal(error.refusal, error.detail)
  return Object.assign(new Error(error.message), error.code !== undefined && { code: error.code })
}

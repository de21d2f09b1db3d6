/** Reasons to refuse a request. The rules throw a `Refusal`, and http/error-responses.ts sends it. */
import { PROBLEMS, type ProblemCode } from '../../protocol/problems.js'

/** Errors that the published API does not define, sent in its error format. */
const FURTHER = {
  bad_request: { status: 400, cause: 'The request is not valid HTTP.' },
  not_signed_in: { status: 401, cause: 'This needs a session: sign in.' },
  invalid_credentials: { status: 401, cause: 'The email or the password is not correct.' },
  invalid_link: {
    status: 401,
    cause:
      'This sign-in link was used before, or has expired. rushes admin user link <email> prints another.',
  },
  foreign_origin: { status: 403, cause: 'The request comes from another website.' },
  https_required: { status: 403, cause: 'Signing in needs HTTPS, except on this machine.' },
  account_banned: { status: 403, cause: 'The account is banned.' },
  not_found: { status: 404, cause: 'Not found.' },
  gone: { status: 410, cause: 'This output was removed.' },
  range_not_satisfiable: { status: 416, cause: 'The requested range is outside the file.' },
  payload_too_large: { status: 413, cause: 'The request body is larger than the service accepts.' },
  overloaded: {
    status: 503,
    cause: 'The service is receiving too many large requests. Try again later.',
  },
  not_ready: { status: 503, cause: 'The service is not ready.' },
  internal_error: { status: 500, cause: 'Internal error of the service.' },
} as const

export type RefusalCode = ProblemCode | keyof typeof FURTHER

/** All error codes of the service, with the HTTP status and the start of the message. */
export const REFUSALS: Readonly<Record<RefusalCode, { readonly status: number; readonly cause: string }>> = {
  ...PROBLEMS,
  ...FURTHER,
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number

  /** The message is the cause from the table, followed by `detail`. */
  constructor(code: RefusalCode, detail?: string) {
    const { status, cause } = REFUSALS[code]
    super(detail === undefined ? cause : `${cause} ${detail}`)
    this.code = code
    this.status = status
  }
}

/**
 * Creates a refusal with another message, if the cause in the table does not fit: for example `invalid_input` for a
 * request that is not a create.
 */
export const refusalSaying = (code: RefusalCode, message: string): Refusal =>
  Object.assign(new Refusal(code), { message })

export const invalidInput = (message: string): Refusal => refusalSaying('invalid_input', message)

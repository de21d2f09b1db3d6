/** Why a request is refused. The rules throw it, and http/error-responses.ts sends it. */
import { PROBLEMS, type ProblemCode } from '../../protocol/problems.js'

/** Errors that the published interface does not name, sent in its shape. */
const FURTHER = {
  bad_request: { status: 400, cause: 'The request is not valid HTTP.' },
  account_banned: { status: 403, cause: 'The account is banned.' },
  not_found: { status: 404, cause: 'There is nothing at this address.' },
  method_not_allowed: { status: 405, cause: 'This address does not take this method.' },
  request_timeout: { status: 408, cause: 'The request came too slowly.' },
  gone: { status: 410, cause: 'This output has been removed.' },
  precondition_failed: { status: 412, cause: 'The file is another one by now.' },
  range_not_satisfiable: { status: 416, cause: 'The file has no such range.' },
  payload_too_large: { status: 413, cause: 'The request body is larger than the service accepts.' },
  headers_too_large: { status: 431, cause: 'The headers are larger than the service accepts.' },
  not_ready: { status: 503, cause: 'The service cannot take requests now.' },
  internal_error: { status: 500, cause: 'The service met an error of its own.' },
} as const

export type RefusalCode = ProblemCode | keyof typeof FURTHER

const TABLE: Readonly<Record<RefusalCode, { readonly status: number; readonly cause: string }>> = {
  ...PROBLEMS,
  ...FURTHER,
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly status: number

  /** `detail` follows the cause that the table gives. */
  constructor(code: RefusalCode, detail?: string) {
    const { status, cause } = TABLE[code]
    super(detail === undefined ? cause : `${cause} ${detail}`)
    this.code = code
    this.status = status
  }
}

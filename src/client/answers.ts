/** Answers that are errors, as `RushesError`s: by the table of codes, else by the HTTP status. */
import { OWN_CODES, RushesError, type RushesErrorOptions } from '../errors.js'
import { type HttpFailure, type HttpResponse, readText } from '../host/http.js'
import { parseErrorBody } from '../protocol/parse.js'
import { problemByStatus, problemOf } from '../protocol/problems.js'
import { printable, shortened } from '../protocol/text.js'

/** Larger answers are errors: nothing in the interface comes near. */
export const MOST_ANSWER_BYTES = 8 * 1024 * 1024

export interface Answer {
  readonly status: number
  readonly text: string
  readonly location: string | undefined
  readonly retryAfter: string | undefined
}

/**
 * Reads an answer to its end. `conceal` takes secrets out of it: some services show a request back in their errors, and
 * errors end in logs. Throws `BodyTooLarge` or `HttpFailure`.
 */
export async function readAnswer(response: HttpResponse, conceal?: Conceal): Promise<Answer> {
  return {
    ...headOf(response, conceal),
    text: (conceal ?? same)(await readText(response, MOST_ANSWER_BYTES)),
  }
}

export type Conceal = (text: string) => string

const same: Conceal = (text) => text

/** What is known of an answer before its body has come. */
export function headOf(response: HttpResponse, conceal: Conceal = same): Answer {
  const location = response.header('location')
  return {
    status: response.status,
    location: location === undefined ? undefined : conceal(location),
    retryAfter: response.header('retry-after'),
    text: '',
  }
}

/**
 * `missing code` and unknown codes fall back to the status; a 404 is a run not found only when it says so. A service
 * cannot speak in the codes of `rushes` itself: a refusal called `submission_unknown` would be kept as a run.
 */
export function errorOfAnswer(answer: Answer): RushesError {
  const { code, message } = parseErrorBody(answer.text)
  const known = problemOf(code)
  const row = known !== undefined && known.status === answer.status ? known : problemByStatus(answer.status)
  const said = printable(message ?? '') || known?.cause || saidOtherwise(answer)
  const word = printable(code ?? '')
  return new RushesError(
    word === '' || Object.hasOwn(OWN_CODES, word) ? 'service_error' : word,
    `The service answered ${answer.status}: ${shortened(said)}`,
    {
      hint: row.hint,
      httpStatus: answer.status,
      exitCode: row.exit,
    },
  )
}

const saidOtherwise = ({ text }: Answer): string => {
  const body = shortened(printable(text).trim(), 120)
  return body === '' ? 'no explanation' : body
}

export const badResponse = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('bad_response', what, {
    hint: 'Is the address right, and does this service speak the runs interface? Add --debug to see the exchange.',
    ...options,
  })

export const networkError = (failure: HttpFailure, host: string): RushesError =>
  new RushesError('network', `${host} could not be reached: ${printable(failure.message)}`, {
    hint: 'Check the address and the network (a proxy is taken from HTTPS_PROXY), then try again.',
    cause: failure,
  })

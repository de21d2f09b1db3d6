/** Messages for a create request that failed or has an unknown outcome. */
import type { InputProblem } from '../../protocol/validate.js'
import type { ApiErrorParts } from '../api.js'
import { plural } from '../format.js'

interface FailureText {
  readonly title: string
  /** What the user can do next. */
  readonly text: string
}

export interface CreateFailure extends FailureText {
  /** Messages from the service, by parameter name. */
  readonly fields: Readonly<Record<string, string>>
  /** True if the run may exist despite the failure. */
  readonly mayExist: boolean
}

export interface FailureContext {
  /** Account name. */
  readonly account: string
  /** True if the form can be sent again without the risk of paying twice. */
  readonly canResend: boolean
}

export function failureOf(error: ApiErrorParts, { account, canResend }: FailureContext): CreateFailure {
  const { status, code, message } = error
  if (isOutcomeUnknown(status))
    return unknownOutcome(
      canResend,
      status === 0
        ? 'The connection ended before the service answered.'
        : `The service sent an error (${status}).`,
    )
  const fields = code === 'invalid_input' ? fieldMessages(message) : {}
  return { ...textOf(error, account), fields, mayExist: false }
}

/** Failure shown when a request got no valid response, or was sent before the page was reloaded. */
export const unknownOutcome = (
  canResend: boolean,
  reason = 'This form was sent, and the response was lost.',
): CreateFailure => ({
  title: 'The run may exist.',
  text: `${reason} ${canResend ? RESEND : LOOK_FIRST}`,
  fields: {},
  mayExist: true,
})

const RESEND =
  'Create it again without changes: if the run exists, you get that one, and you do not pay a second time.'
const LOOK_FIRST =
  'The form has changed since, so it creates another run, which costs credits too. Look for the first run in the list.'

/** Returns true if the service may have accepted the request. */
export const isOutcomeUnknown = (status: number): boolean =>
  status === 0 || (status >= 200 && status < 300) || status >= 500

function textOf({ status, code, message, retryAfterS }: ApiErrorParts, account: string): FailureText {
  switch (code) {
    case 'model_not_found':
      return {
        title: 'The service no longer has this model.',
        text: 'Choose another one, or reload the page.',
      }
    case 'insufficient_balance':
      return {
        title: 'Not enough credits.',
        text:
          `${message} An administrator can add credits, with the --data or --database of the service if it has ` +
          `one: rushes admin credits add ${account} 100`,
      }
    case 'account_banned':
      return {
        title: 'This account is banned.',
        text: 'You can see its runs, but create none. Ask the administrator of the service.',
      }
    case 'foreign_origin':
      return {
        title: 'The service refused the address of this page.',
        text: 'Open the console at the URL that the service prints when it starts, then create the run again.',
      }
    case 'payload_too_large':
      return { title: 'The images are too large.', text: 'Remove an image, or use smaller ones.' }
    case 'USAGE_EXCEEDED':
      return { title: 'The quota is used up.', text: message }
  }
  if (status === 429) return { title: 'Too many runs at once.', text: waitText(retryAfterS) }
  if (status === 401) return { title: 'You were signed out.', text: 'Sign in, then create the run again.' }
  return { title: 'The run was not created.', text: message }
}

function waitText(seconds: number | undefined): string {
  const wait = seconds === undefined ? 'a few seconds' : plural(seconds, 'second')
  return `The page creates at most 20 runs in 10 seconds. Wait ${wait}, then create it again.`
}

/**
 * Splits an `invalid_input` message into one message per parameter.
 * Example: `… input.quality must be one of basic, high, not "x"; input.prompt is missing.`
 */
export const fieldMessages = (message: string): Readonly<Record<string, string>> =>
  messagesOf(
    [...message.matchAll(/input\.([\w.-]+(?:\/\d+)?) (.*?)(?=; input\.\w|\.?$)/gs)].map(
      ([, parameter = '', text = '']) => ({ parameter, message: text }),
    ),
  )

/** Returns sentences by parameter. The message for a list entry is added to the list's parameter. */
export function messagesOf(problems: readonly InputProblem[]): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {}
  for (const { parameter, message } of problems) {
    const [name = '', entry] = parameter.split('/')
    const subject = entry === undefined ? 'This' : `Entry ${Number(entry) + 1}`
    const sentence = message === 'is missing' ? 'Enter a value.' : `${subject} ${message}.`
    fields[name] = fields[name] === undefined ? sentence : `${fields[name]} ${sentence}`
  }
  return fields
}

/**
 * One row for each error code of the interface (section 7): HTTP status, cause, exit code, and what the user should do.
 * Used by the client, the command line and the local service.
 */
import { EXIT } from '../errors.js'

/** What a command makes of a problem. */
export interface ProblemExit {
  readonly exit: number
  readonly hint: string
}

export interface Problem extends ProblemExit {
  readonly status: number
  /** The local service sends this as `error.message`. */
  readonly cause: string
}

export const PROBLEMS = {
  invalid_json: {
    status: 400,
    cause: 'The request body is not valid JSON.',
    exit: EXIT.refused,
    hint: 'A proxy or another server changed the request body. Check the service URL and the proxy.',
  },
  missing_model: {
    status: 400,
    cause: 'The field "model" is missing or not a string.',
    exit: EXIT.refused,
    hint: 'Give the model as <provider>/<name>.',
  },
  missing_input: {
    status: 400,
    cause: 'The field "input" is missing or not an object.',
    exit: EXIT.refused,
    hint: 'Give the input as a JSON object.',
  },
  invalid_input: {
    status: 400,
    cause: "The input does not match the model's schema.",
    exit: EXIT.refused,
    hint: 'Compare the input with the parameters of the model.',
  },
  model_not_found: {
    status: 400,
    cause: 'No available model has this identifier.',
    exit: EXIT.refused,
    hint: 'Use an identifier that the service publishes.',
  },
  missing_api_key: {
    status: 401,
    cause: 'The Authorization header is missing or not of the form "Bearer <API_KEY>".',
    exit: EXIT.key,
    hint: 'The key did not reach the service: a proxy may have removed it, or it contains invalid characters.',
  },
  invalid_api_key: {
    status: 401,
    cause: 'The API key is invalid, disabled or expired.',
    exit: EXIT.key,
    hint: "Create or enable a key in the account's settings (API keys).",
  },
  insufficient_balance: {
    status: 402,
    cause: 'The balance is too low for this run.',
    exit: EXIT.account,
    hint: "Add credits in the account's settings (Credits).",
  },
  api_key_spend_limit_exceeded: {
    status: 403,
    cause: "The key's lifetime spend limit has been reached.",
    exit: EXIT.account,
    hint: "Raise the key's spend limit in the account's settings (API keys), or use another key.",
  },
  ip_not_allowed: {
    status: 403,
    cause: "The caller's IP address is not one of the key's allowed IP addresses.",
    exit: EXIT.account,
    hint: "Add this machine's IP address to the key's allowed IP addresses in the account's settings, or allow all.",
  },
  run_not_found: {
    status: 404,
    cause: 'No run with this identifier exists for this account.',
    exit: EXIT.notFound,
    hint: 'Check the id. A run is visible only to the account that created it: check the API key and the service URL too.',
  },
  RATE_LIMITED: {
    status: 429,
    cause: 'Rate limit exceeded: too many requests in a short window.',
    exit: EXIT.rateLimited,
    hint: 'Another program may use the same key. Wait, use a separate key, or ask support for a higher limit.',
  },
  USAGE_EXCEEDED: {
    status: 429,
    cause: "The key's usage quota is exhausted.",
    exit: EXIT.account,
    hint: "Raise the key's quota in the account's settings (API keys), or use another key.",
  },
} as const satisfies Record<string, Problem>

export type ProblemCode = keyof typeof PROBLEMS

export const problemOf = (code: string | undefined): Problem | undefined =>
  code !== undefined && Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code as ProblemCode] : undefined

/** For an error response without a known code. The interface defines no code for a banned account, only the status 403. */
const BY_STATUS: Readonly<Record<number, ProblemExit>> = {
  401: { exit: EXIT.key, hint: 'Check the API key.' },
  402: PROBLEMS.insufficient_balance,
  403: {
    exit: EXIT.account,
    hint:
      'The account or the key is not allowed to do this, or the account is banned. ' +
      "Check the account's settings, or ask support.",
  },
  429: PROBLEMS.RATE_LIMITED,
}

/** Returns exit code and hint of an error response without a known code. */
export function problemByStatus(status: number): ProblemExit {
  if (status >= 500)
    return { exit: EXIT.serviceBroken, hint: 'The service has an internal problem. Try again later.' }
  return BY_STATUS[status] ?? { exit: EXIT.refused, hint: 'Check the service URL and the request.' }
}

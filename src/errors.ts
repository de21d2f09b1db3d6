/**
 * The closed list of errors. Engines throw `RushesError`. Only `cli/process/exit.ts` turns errors into exit codes, by
 * table and never by message text.
 */

/** Names of the exit codes. Scripts may rely on the numbers: see docs/exit-codes.md. */
export const EXIT = {
  ok: 0,
  bug: 1,
  usage: 2,
  refused: 3,
  key: 4,
  account: 5,
  notFound: 6,
  rateLimited: 7,
  serviceBroken: 8,
  network: 9,
  runFailed: 10,
  waitTimeout: 11,
  downloadFailed: 12,
  outcomeUnknown: 13,
  sighup: 129,
  sigint: 130,
  stdoutClosed: 141,
  sigterm: 143,
} as const

/**
 * The closed list of error codes that `rushes` itself sets. An error may also have a code that the service sent
 * (`protocol/problems.ts`).
 */
export const OWN_CODES = {
  usage: { exit: EXIT.usage, about: 'a flag, argument, setting or input is invalid; nothing was sent' },
  no_base_url: { exit: EXIT.usage, about: 'no service URL is set' },
  no_api_key: { exit: EXIT.key, about: 'no API key is set for this service' },
  insecure_url: { exit: EXIT.usage, about: 'a plain http URL that is not loopback' },
  network: { exit: EXIT.network, about: 'the service could not be reached; nothing was accepted' },
  bad_response: { exit: EXIT.serviceBroken, about: 'the service sent an invalid response' },
  service_error: { exit: EXIT.serviceBroken, about: 'the service failed (5xx)' },
  submission_unknown: { exit: EXIT.outcomeUnknown, about: 'a create was sent and its outcome is unknown' },
  run_failed: { exit: EXIT.runFailed, about: 'the run ended without success' },
  wait_timeout: { exit: EXIT.waitTimeout, about: 'the timeout passed; the run is still running' },
  download_failed: { exit: EXIT.downloadFailed, about: 'an output could not be downloaded or written' },
  interrupted: { exit: EXIT.sigint, about: 'a signal ended the command; existing runs continue' },
  internal: { exit: EXIT.bug, about: 'a bug in rushes' },
} as const satisfies Record<string, { exit: number; about: string }>

export type OwnCode = keyof typeof OWN_CODES

export interface RushesErrorOptions {
  /** What to do next, in one or two sentences. */
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** Id of the run that the error is about, if the run exists. */
  readonly runId?: string | undefined
  /** HTTP status of the response that caused the error. */
  readonly httpStatus?: number | undefined
  /** Overrides the exit code of the error code, for a signal or a status without a known code. */
  readonly exitCode?: number | undefined
}

/** Every error that `rushes` throws on purpose. `code` is stable; `message` is for people and may change. */
export class RushesError extends Error {
  override readonly name = 'RushesError'
  /** A code of `rushes` (`OWN_CODES`), or the code that the service sent. */
  readonly code: string
  readonly hint: string | undefined
  readonly runId: string | undefined
  readonly httpStatus: number | undefined
  readonly exitCode: number

  constructor(code: OwnCode, message: string, options?: RushesErrorOptions)
  constructor(code: string, message: string, options: RushesErrorOptions & { exitCode: number })
  constructor(code: string, message: string, options: RushesErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.runId = options.runId
    this.httpStatus = options.httpStatus
    this.exitCode = options.exitCode ?? OWN_CODES[code as OwnCode]?.exit ?? EXIT.bug
  }

  /**
   * Returns a copy of the error with some parts replaced. Code, status and exit code stay. `consequence` is a sentence
   * appended to the message. It says what the error means for a run: whether a run was created or paid for. `next` is
   * appended to the hint.
   */
  with(changes: RushesErrorChanges): RushesError {
    const message = changes.message ?? this.message
    const hint = 'hint' in changes ? changes.hint : this.hint
    return new RushesError(this.code, withSentence(message, changes.consequence), {
      hint: [hint, changes.next].filter(Boolean).join(' ') || undefined,
      cause: this.cause,
      runId: 'runId' in changes ? changes.runId : this.runId,
      httpStatus: this.httpStatus,
      exitCode: this.exitCode,
    })
  }
}

export interface RushesErrorChanges {
  readonly message?: string | undefined
  readonly consequence?: string | undefined
  /** Replaces the hint. If present and undefined, the hint is removed. */
  readonly hint?: string | undefined
  readonly next?: string | undefined
  /** Replaces the run id. If present and undefined, the id is removed. */
  readonly runId?: string | undefined
}

const withSentence = (message: string, sentence: string | undefined): string =>
  sentence === undefined ? message : `${message.trimEnd()}${/[.!?]\s*$/.test(message) ? '' : '.'} ${sentence}`

/** Returns the message of a thrown value of any type. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

export const usageError = (message: string, hint?: string): RushesError =>
  new RushesError('usage', message, { hint })

/** Error for a state folder of a newer version: the only problem of the state folder that ends every command. */
export const newerState = (folder: string, cause: Error): RushesError =>
  new RushesError(
    'usage',
    `The state folder ${folder} was written by a newer version of rushes (${cause.message}).`,
    { hint: 'Use that version, or set RUSHES_STATE_DIR to another folder.', cause },
  )

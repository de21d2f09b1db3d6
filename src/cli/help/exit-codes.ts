/** `rushes help exit-codes`. The rows are those of docs/exit-codes.md. */
import { EXIT, OWN_CODES } from '../../errors.js'
import { PROBLEMS } from '../../protocol/problems.js'
import { listing, withoutMarkdown } from './listing.js'

interface Meaning {
  readonly happened: string
  /** What a script should do. */
  readonly next: string
}

export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, Meaning>> = {
  ok: { happened: 'done', next: 'continue' },
  bug: { happened: 'a bug in `rushes`', next: 'run it again with `--debug` and report the output' },
  usage: {
    happened: 'a flag, argument, setting or input is not valid; nothing was sent',
    next: 'fix the command; a retry does not help',
  },
  refused: {
    happened: 'the service refused the request: 400, or another 4xx not listed below',
    next: 'fix the input; a retry does not help',
  },
  key: {
    happened: 'no API key, or the service rejected it (401)',
    next: 'run `rushes login` or set `RUSHES_API_KEY`',
  },
  account: {
    happened: 'the account does not allow it: 402, 403, or 429 `USAGE_EXCEEDED`',
    next: 'stop; add credits or raise a limit first',
  },
  notFound: {
    happened: 'run not found (404 `run_not_found`)',
    next: 'check the id, the API key and the service address',
  },
  rateLimited: {
    happened: 'rate limit exceeded (429), after the retries',
    next: 'wait, then run it again; the request that failed created nothing',
  },
  serviceBroken: {
    happened: '5xx for a status request after the retries, a redirected create, or an invalid response',
    next: 'if the run exists, run `rushes wait <id>` later',
  },
  network: {
    happened: 'the service could not be reached, after the retries; no run was accepted',
    next: 'run it again later',
  },
  runFailed: {
    happened: 'the run ended without success',
    next: 'read the error; a new run costs again',
  },
  waitTimeout: {
    happened: 'the wait limit passed; the run is still running',
    next: 'run `rushes wait <id>`',
  },
  downloadFailed: {
    happened: 'the run succeeded, but an output could not be downloaded or written',
    next: 'run `rushes wait <id> -d`; do not create it again',
  },
  outcomeUnknown: {
    happened: 'a create was sent and its outcome is unknown',
    next: 'do not send it again automatically: a run may exist and cost money',
  },
  sighup: { happened: 'interrupted by SIGHUP; existing runs continue', next: 'run `rushes wait <id>`' },
  sigint: {
    happened: 'interrupted by SIGINT (Ctrl-C); existing runs continue',
    next: 'run `rushes wait <id>`',
  },
  stdoutClosed: {
    happened: 'the reader closed standard output (`\\| head -1`)',
    next: 'nothing; the run did not fail',
  },
  sigterm: { happened: 'interrupted by SIGTERM; existing runs continue', next: 'run `rushes wait <id>`' },
}

export const exitRows = (): readonly (readonly [number, Meaning])[] =>
  (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => [EXIT[name], EXIT_MEANINGS[name]])

export const exitCodes = (): string => `Exit codes, and what to do:

${listing(exitRows().map(([code, { happened, next }]) => [String(code), `${happened} -> ${next}`]))}

With several runs, the first that applies of 13, 5, 4, 3, 7, 8, 9, 6, 10, 11, 12.
A bug, a usage error or a signal comes before all of them.

With --json, an error is one line on standard error; every key is always present:

  {"error":{"code":"...","message":"...","hint":"...","http_status":402,"exit_code":5,"run_id":null}}

The code comes from the service:

${listing(Object.entries(PROBLEMS).map(([code, { status, exit, cause }]) => [code, `HTTP ${status}, exit ${exit}: ${cause}`]))}

or from rushes:

${listing(Object.entries(OWN_CODES).map(([code, { exit, about }]) => [code, `exit ${exit}: ${withoutMarkdown(about)}`]))}
`

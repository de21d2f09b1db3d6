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
  ok: { happened: 'done', next: 'go on' },
  bug: { happened: 'a bug in `rushes`', next: 'run it again with `--debug` and report what it prints' },
  usage: {
    happened: 'a flag, an argument, a setting or an input is wrong; nothing was sent',
    next: 'mend the call; a retry cannot help',
  },
  refused: {
    happened: 'the service refused the request: a 400, or a 4xx that is not named below',
    next: 'mend the input; a retry cannot help',
  },
  key: {
    happened: 'no API key, or the service did not take it (401)',
    next: '`rushes login`, or set `RUSHES_API_KEY`',
  },
  account: {
    happened: 'the account says no: 402, 403, or 429 `USAGE_EXCEEDED`',
    next: 'stop; somebody has to add credits or raise a limit',
  },
  notFound: { happened: 'no such run (404 `run_not_found`)', next: 'check id, key and address' },
  rateLimited: {
    happened: '429 after the retries',
    next: 'wait, then run it again; nothing was created by the request that failed',
  },
  serviceBroken: {
    happened:
      '5xx after the retries when asking about a run, a redirected create, or an answer that makes no sense',
    next: 'for an existing run: `rushes wait <id>` later',
  },
  network: {
    happened: 'the service could not be reached, after the retries; nothing was accepted',
    next: 'run it again later',
  },
  runFailed: {
    happened: 'a run ended without success',
    next: 'the run is over; a new one is a new decision',
  },
  waitTimeout: { happened: 'the wait limit passed; the run goes on', next: '`rushes wait <id>`' },
  downloadFailed: {
    happened: 'the run succeeded, but an output could not be downloaded or written',
    next: '`rushes wait <id> -d`; do not run it again',
  },
  outcomeUnknown: {
    happened: 'a create was sent and its outcome is unknown',
    next: 'do not send it again by itself: a run may exist and cost money',
  },
  sighup: { happened: 'ended by SIGHUP; a run that exists goes on', next: '`rushes wait <id>`' },
  sigint: { happened: 'ended by SIGINT (Ctrl-C); a run that exists goes on', next: '`rushes wait <id>`' },
  stdoutClosed: {
    happened: 'standard output was closed by its reader (`\\| head -1`)',
    next: 'nothing; that is no failure of the run',
  },
  sigterm: { happened: 'ended by SIGTERM; a run that exists goes on', next: '`rushes wait <id>`' },
}

export const exitRows = (): readonly (readonly [number, Meaning])[] =>
  (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => [EXIT[name], EXIT_MEANINGS[name]])

export const exitCodes = (): string => `Exit codes, and what a script does about them:

${listing(exitRows().map(([code, { happened, next }]) => [String(code), `${happened} -> ${next}`]))}

With several runs, the first that applies of 13, 5, 4, 3, 7, 8, 9, 6, 10, 11, 12.
A bug, a usage error or a signal goes before all of them.

Under --json an error is one line on standard error, every key always there:

  {"error":{"code":"...","message":"...","hint":"...","http_status":402,"exit_code":5,"run_id":null}}

Its code is the service's, where it sent one:

${listing(Object.entries(PROBLEMS).map(([code, { status, exit, cause }]) => [code, `HTTP ${status}, exit ${exit}: ${cause}`]))}

or one of these:

${listing(Object.entries(OWN_CODES).map(([code, { exit, about }]) => [code, `exit ${exit}: ${withoutMarkdown(about)}`]))}
`

/** The meaning of each exit code, for docs/exit-codes.md. */
import type { EXIT } from '../../src/errors.js'

interface ExitMeaning {
  readonly happened: string
  /** What a script should do. */
  readonly next: string
}

export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, ExitMeaning>> = {
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
    next: 'check the id, the API key and the service URL',
  },
  rateLimited: {
    happened: 'rate limit exceeded (429), after the retries',
    next: 'wait; if the error names a run, run `rushes wait <id>`, otherwise run it again',
  },
  serviceBroken: {
    happened:
      '5xx for a status request after the retries, an invalid response, or the service redirected a create (not with 303)',
    next: 'if the error names a run, run `rushes wait <id>` later',
  },
  network: {
    happened: 'the service could not be reached, after the retries; the failed request created nothing',
    next: 'if the error names a run, run `rushes wait <id>` later, otherwise run it again',
  },
  runFailed: {
    happened: 'the run failed; for `batch --check`, an asset is missing or out of date',
    next: 'read the error; a new run costs again',
  },
  waitTimeout: {
    happened: 'the timeout passed; the run is still running',
    next: 'run `rushes wait <id>`',
  },
  downloadFailed: {
    happened: 'the run succeeded, but an output could not be downloaded or written',
    next: 'run `rushes download <id>`; do not create it again',
  },
  outcomeUnknown: {
    happened:
      'a create was sent and its outcome is unknown: no answer, a timeout (also 408), 5xx, 303, or a 2xx other than 201',
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

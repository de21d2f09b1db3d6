/**
 * The program's entry: signals, standard streams, the exit code. The only file that reads the arguments of the process
 * and ends it.
 */

import { writeSync } from 'node:fs'
import { EXIT } from '../../errors.js'
import {
  createInterrupts,
  type InterruptSource,
  SIGNAL_EXITS,
  type SignalName,
} from '../../host/interrupts.js'
import { describeReason } from '../../host/system-error.js'
import { VERSION } from './version.js'

const SIGNALS = Object.keys(SIGNAL_EXITS) as SignalName[]

/** After a signal, the longest time for unfinished work and for a reader of standard output that has stopped reading. */
const GRACE_PERIOD_MS = 2_000

/** Runs the command line of this process. Never resolves: it ends the process. */
export async function start(): Promise<void> {
  const argv = process.argv.slice(2)
  if (printedVersion(argv)) return
  const interrupts = createInterrupts()
  const handlers = SIGNALS.map((name) => [name, () => interruptBy(name, interrupts)] as const)
  for (const [name, handler] of handlers) process.on(name, handler)
  const { stdout, stderr } = process
  // Node ignores SIGPIPE, so a closed pipe is an error of the stream.
  let stdoutError: NodeJS.ErrnoException | undefined
  stdout.on('error', (error) => {
    stdoutError ??= error
    interrupts.interrupt('stdout closed')
  })
  stderr.on('error', () => {})

  // Loaded after the handlers are in place, and not for `--version`.
  const { main } = await import('../main.js')
  const exitCode = await main({
    argv,
    env: process.env,
    stdin: () => process.stdin,
    stdout,
    stderr,
    interrupts,
  })

  const { reason } = interrupts
  // From here on a signal ends the process at once.
  for (const [name, handler] of handlers) process.off(name, handler)
  // `process.exit` drops unwritten output of a pipe.
  const written = flush(stdout).then(() => flush(stderr))
  await (reason === undefined ? written : Promise.race([written, gracePeriod()]))
  if (stdoutError !== undefined) await endAfter(stdoutError)
  const signal = reason?.exitCode === exitCode ? reason.by : undefined
  // A shell stops its script only if the signal itself ended the process.
  if (signal !== undefined && signal !== 'stdout closed' && process.platform !== 'win32')
    process.kill(process.pid, signal)
  process.exit(exitCode)
}

/** Answers `--version` before anything else is loaded. Where that fails, `main` reports why. */
function printedVersion([word, ...more]: readonly string[]): boolean {
  if (more.length > 0 || (word !== '--version' && word !== '-V')) return false
  try {
    writeSync(1, `${VERSION}\n`)
    return true
  } catch {
    return false
  }
}

const gracePeriod = () => new Promise((resolve) => setTimeout(resolve, GRACE_PERIOD_MS))

/** A second signal ends the process, even if a command does not react to it. */
function interruptBy(name: SignalName, interrupts: InterruptSource): void {
  interrupts.interrupt(name)
  if (interrupts.second.aborted) setTimeout(() => process.exit(SIGNAL_EXITS[name]), GRACE_PERIOD_MS).unref()
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) setImmediate(resolve)
    // The 'error' event of a write comes after its callback.
    else stream.write('', () => setImmediate(resolve))
  })
}

/** A closed pipe ends the program silently; any other error means that the answer is lost. */
async function endAfter(error: NodeJS.ErrnoException): Promise<never> {
  if (error.code === 'EPIPE') process.exit(EXIT.stdoutClosed)
  process.stderr.write(`error: standard output cannot be written: ${describeReason(error)}\n`)
  await flush(process.stderr)
  process.exit(EXIT.downloadFailed)
}

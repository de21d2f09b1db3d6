/**
 * The program's entry point: signals, standard streams and the exit code. Only this file reads the arguments of the
 * process and ends it.
 */
import { writeSync } from 'node:fs'
import { EXIT } from '../errors.js'
import { createInterrupts, type InterruptSource, SIGNAL_EXITS, type SignalName } from '../host/interrupts.js'
import { isClosedPipe } from '../host/system-error.js'
import { VERSION } from './process/version.js'

const SIGNALS = Object.keys(SIGNAL_EXITS) as SignalName[]

/** Maximum time after a signal for unfinished work, and for a reader of standard output that has stopped reading. */
const GRACE_PERIOD_MS = 2_000

/** Runs the command line of this process and ends the process. Resolves only for `--version`. */
export async function start(): Promise<void> {
  const argv = process.argv.slice(2)
  if (printedVersion(argv)) return
  const interrupts = createInterrupts()
  const handlers = SIGNALS.map((name) => [name, () => interruptBy(name, interrupts)] as const)
  for (const [name, handler] of handlers) process.on(name, handler)
  const { stdout, stderr } = process
  // Node ignores SIGPIPE, so a closed pipe appears as an error of the stream.
  let stdoutError: NodeJS.ErrnoException | undefined
  stdout.on('error', (error) => {
    stdoutError ??= error
    interrupts.interrupt('stdout closed')
  })
  stderr.on('error', () => {})

  // Loads the program after the handlers are set, and not for `--version`.
  const { main, reportLostOutput, reportWarning } = await import('./main.js')
  const options = { argv, env: process.env, stdin: () => process.stdin, stdout, stderr, interrupts }
  // Node prints its warnings, unless they are off, as text between lines of JSON.
  if (process.listenerCount('warning') > 0) {
    process.removeAllListeners('warning')
    process.on('warning', ({ message }) => reportWarning(options, message))
  }
  const exitCode = await main(options)

  const { reason } = interrupts
  // After this point a signal ends the process immediately.
  for (const [name, handler] of handlers) process.off(name, handler)
  // Waits until the output is written, because `process.exit` drops unwritten output of a pipe.
  const written = flush(stdout).then(() => flush(stderr))
  await (reason === undefined ? written : Promise.race([written, gracePeriod()]))
  if (stdoutError !== undefined) {
    if (isClosedPipe(stdoutError)) process.exit(EXIT.stdoutClosed)
    const code = reportLostOutput(options, stdoutError)
    await flush(stderr)
    process.exit(code)
  }
  const signal = reason?.exitCode === exitCode ? reason.by : undefined
  // A shell stops its script only if the signal itself ended the process, so the process sends the signal to itself.
  if (signal !== undefined && signal !== 'stdout closed' && process.platform !== 'win32')
    process.kill(process.pid, signal)
  process.exit(exitCode)
}

/** Prints the version before anything else is loaded. If that fails, returns false, and `main` reports the error. */
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

/** Interrupts the command. A second signal ends the process, even if the command does not react. */
function interruptBy(name: SignalName, interrupts: InterruptSource): void {
  interrupts.interrupt(name)
  if (interrupts.second.aborted) setTimeout(() => process.exit(SIGNAL_EXITS[name]), GRACE_PERIOD_MS).unref()
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) setImmediate(resolve)
    // The 'error' event of a write is emitted after the callback of the write.
    else stream.write('', () => setImmediate(resolve))
  })
}

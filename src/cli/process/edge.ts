/**
 * The operating system's edge: signals, streams that end early, and the way the process ends. The only file that
 * touches `process` for more than a look.
 */
import { EXIT } from '../../errors.js'
import { main } from '../main.js'
import { createInterrupts, type InterruptSource, SIGNAL_EXITS, type SignalName } from './interrupts.js'
import { flushed, openOutlets } from './stdio.js'

const SIGNALS = Object.keys(SIGNAL_EXITS) as SignalName[]

/** Runs the command line of this process to its end. Does not return where a signal ended it. */
export async function runProcess(): Promise<void> {
  const interrupts = createInterrupts()
  const handlers = SIGNALS.map((name) => [name, () => interruptBy(name, interrupts)] as const)
  for (const [name, handler] of handlers) process.on(name, handler)
  // Node ignores SIGPIPE: a reader that went away shows as an error of the stream.
  let stdoutError: NodeJS.ErrnoException | undefined
  const onStdoutError = (error: NodeJS.ErrnoException) => {
    stdoutError ??= error
    interrupts.interrupt('stdout closed')
  }
  const { stdout, stderr, flush } = openOutlets({
    stdout: { fd: 1, open: () => process.stdout, onError: onStdoutError },
    stderr: { fd: 2, open: () => process.stderr, onError() {} },
  })

  const exitCode = await main({
    argv: process.argv.slice(2),
    env: process.env,
    stdin: () => process.stdin,
    stdout,
    stderr,
    interrupts,
  })

  const { reason } = interrupts
  // All is done but the last words: a signal ends that at once, and one that has come waits for no reader that stands still.
  for (const [name, handler] of handlers) process.off(name, handler)
  await (reason === undefined ? flush() : Promise.race([flush(), lastGrace()]))
  if (stdoutError !== undefined) await endWithout(stdoutError)
  const signal = reason?.exitCode === exitCode ? reason.by : undefined
  // A script sees that the program died of the signal only if it really does.
  if (signal !== undefined && signal !== 'stdout closed' && process.platform !== 'win32')
    process.kill(process.pid, signal)
  process.exit(exitCode)
}

/** Whatever a command is stuck in, it outlives a second signal by this at most. */
const LAST_GRACE_MS = 2_000

const lastGrace = () => new Promise((resolve) => setTimeout(resolve, LAST_GRACE_MS))

function interruptBy(name: SignalName, interrupts: InterruptSource): void {
  interrupts.interrupt(name)
  if (interrupts.second.aborted) setTimeout(() => process.exit(SIGNAL_EXITS[name]), LAST_GRACE_MS).unref()
}

/** A reader that went away has read enough, and nothing is said; a full disk has lost the answer. */
export async function endWithout(error: NodeJS.ErrnoException): Promise<never> {
  if (error.code === 'EPIPE') process.exit(EXIT.stdoutClosed)
  process.stderr.write(`error: standard output could not be written: ${error.message}\n`)
  await flushed(process.stderr)
  process.exit(EXIT.downloadFailed)
}

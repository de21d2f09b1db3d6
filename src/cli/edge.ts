/**
 * The operating system's edge: signals, streams that end early, and the way the process ends. The only file that
 * touches `process` for more than a look.
 */
import { fstatSync, writeSync } from 'node:fs'
import { EXIT } from '../errors.js'
import {
  createInterrupts,
  Interruption,
  type InterruptSource,
  SIGNAL_EXITS,
  type SignalName,
} from './interrupts.js'
import { main } from './main.js'

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
  const streams = openStreams(onStdoutError)

  const exitCode = await main({
    argv: process.argv.slice(2),
    env: process.env,
    get stdin() {
      return process.stdin
    },
    get stdout() {
      return streams.stdout()
    },
    get stderr() {
      return streams.stderr()
    },
    interrupts,
    print: printerFor(streams.stdout, onStdoutError),
  })

  await streams.flushStdout()
  if (stdoutError !== undefined) await endWithout(stdoutError)
  await streams.flushStderr()
  for (const [name, handler] of handlers) process.off(name, handler)
  const reason: unknown = interrupts.first.reason
  const signal = reason instanceof Interruption && reason.exitCode === exitCode ? reason.by : undefined
  // A script sees that the program died of the signal only if it really does.
  if (signal !== undefined && signal !== 'stdout closed' && process.platform !== 'win32')
    process.kill(process.pid, signal)
  process.exit(exitCode)
}

/** Each opened when it is first asked for: a pipe loads all of Node's networking, and help alone needs none of it. */
function openStreams(onStdoutError: (error: NodeJS.ErrnoException) => void) {
  let [hasStdout, hasStderr] = [false, false]
  return {
    stdout() {
      if (!hasStdout) process.stdout.on('error', onStdoutError)
      hasStdout = true
      return process.stdout
    },
    stderr() {
      if (!hasStderr) process.stderr.on('error', () => {})
      hasStderr = true
      return process.stderr
    },
    flushStdout: async () => {
      if (hasStdout) await flushed(process.stdout)
    },
    flushStderr: async () => {
      if (hasStderr) await flushed(process.stderr)
    },
  }
}

/** Undefined for a terminal, whose width and colours only its stream knows. */
function printerFor(
  stdout: () => NodeJS.WriteStream,
  onError: (error: NodeJS.ErrnoException) => void,
): ((text: string) => void) | undefined {
  try {
    if (fstatSync(1).isCharacterDevice()) return undefined
  } catch {
    return undefined
  }
  return (text) => {
    let bytes: Uint8Array = Buffer.from(text)
    try {
      while (bytes.byteLength > 0) bytes = bytes.subarray(writeSync(1, bytes))
    } catch (error) {
      // A pipe that is full and does not wait is the stream's to wait for.
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') stdout().write(bytes)
      else onError(error as NodeJS.ErrnoException)
    }
  }
}

/** Whatever a command is stuck in, it outlives a second signal by this at most. */
const LAST_GRACE_MS = 2_000

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

/** `process.exit` drops what is still in a pipe. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) setImmediate(resolve)
    // The error of a write is told after its callback.
    else stream.write('', () => setImmediate(resolve))
  })

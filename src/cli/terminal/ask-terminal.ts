/**
 * Asks the terminal what it can draw. Its replies arrive as if they were typed. So it is in raw mode until they are
 * there: otherwise it would show them, and the shell would read them.
 */
import { execFileSync } from 'node:child_process'
import { openSync, readFileSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import { onAbort, settlesWithin, untilAborted } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { isAnswered, QUESTION } from './terminal-graphics.js'

/** How long a picture waits for the replies. */
const MAX_WAIT_MS = 100
/** How long late replies are kept from the shell, for example over a slow connection. */
const MAX_LISTENING_MS = 1_000
const CTRL_C = '\u0003'

export interface Replies {
  /** Resolves with the replies so far when all are there, and after 100 ms. */
  text(): Promise<string>
  /** Resolves when the terminal is in its own mode again: after all replies, 1 s, or the signal. */
  readonly ended: Promise<void>
}

/**
 * Asks the terminal of this process, also if standard input is a pipe. Returns undefined without a terminal, on Windows,
 * and in the background, where the system stops a process that changes the mode of the terminal.
 */
export function askTerminal(clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Replies | undefined {
  try {
    if (process.platform === 'win32' || !isInForeground()) return undefined
    return ask(openSync('/dev/tty', 'r+'), clock, signal)
  } catch {
    return undefined
  }
}

/** If the process ends in between, Node.js leaves raw mode. */
function ask(terminal: number, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Replies {
  const input = new ReadStream(terminal)
  input.setRawMode(true)
  let replies = ''
  const done = new AbortController()
  const end = () => done.abort()
  const forget = onAbort(signal, end)
  input.on('error', end)
  input.on('data', (bytes) => {
    replies += bytes.toString('latin1')
    // In raw mode, Ctrl-C is a character and no signal.
    if (replies.includes(CTRL_C)) process.kill(process.pid, 'SIGINT')
    if (isAnswered(replies)) end()
  })
  const over = untilAborted(done.signal)
  const settled = settlesWithin(MAX_WAIT_MS, over, clock)
  const ended = settlesWithin(MAX_LISTENING_MS, over, clock).then(() => {
    forget()
    input.setRawMode(false)
    input.destroy()
  })
  writeSync(terminal, QUESTION)
  return { text: () => settled.then(() => replies), ended }
}

function isInForeground(): boolean {
  if (process.platform !== 'linux')
    return execFileSync('ps', ['-o', 'stat=', '-p', String(process.pid)]).includes('+')
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  // After the name in brackets: the process group, and that in the foreground of the terminal.
  return fields[2] === fields[5]
}

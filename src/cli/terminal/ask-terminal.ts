/**
 * Asks the terminal what it can draw. Its replies arrive as if they were typed. So it is in raw mode until they are
 * there: otherwise it would show them, and the shell would read them.
 */
import { execFileSync } from 'node:child_process'
import { openSync, readFileSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import { onAbort, settlesWithin, untilAborted } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { isAnswered, mayBeReplies, QUESTION } from './terminal-graphics.js'

/** How long a picture waits for the replies. */
const MAX_WAIT_MS = 100
/** How long late replies are kept from the shell, for example over a slow connection. */
const MAX_LISTENING_MS = 1_000
/** The same, if there was no reply at all until then, or after Ctrl-C. */
const MAX_SILENCE_MS = 300

/** In raw mode, these keys are characters and no signals. */
const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  '\u0003': 'SIGINT',
  '\u001c': 'SIGQUIT',
  '\u001a': 'SIGTSTP',
}
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

/** Node.js leaves raw mode when the process exits, also after a signal that it handles. */
function ask(terminal: number, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Replies {
  const input = new ReadStream(terminal)
  input.setRawMode(true)
  let replies = ''
  let typed: NodeJS.Signals | undefined
  const done = new AbortController()
  const end = () => done.abort()
  const endSoon = () => void clock.sleep(MAX_SILENCE_MS).then(end)
  const forget = onAbort(signal, endSoon)
  void clock.sleep(MAX_SILENCE_MS).then(() => replies === '' && end())
  input.on('error', end)
  input.on('data', (bytes) => {
    const text = bytes.toString('latin1')
    typed ??= Object.entries(SIGNALS).find(([key]) => text.includes(key))?.[1]
    if (typed === 'SIGINT') process.kill(process.pid, typed)
    replies += text.replaceAll('\u0003', '')
    // Stop at the first typed key: the shell does not get keys that arrive here.
    if (isAnswered(replies) || !mayBeReplies(replies)) end()
  })
  const over = untilAborted(done.signal)
  const settled = settlesWithin(MAX_WAIT_MS, over, clock)
  const ended = settlesWithin(MAX_LISTENING_MS, over, clock).then(() => {
    forget()
    input.setRawMode(false)
    input.destroy()
    // In its own mode: the shell continues after SIGTSTP, and SIGQUIT ends the process at once.
    if (typed !== undefined && typed !== 'SIGINT') process.kill(process.pid, typed)
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

/** Runs the command that prints the API key, such as a password manager. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { isatty } from 'node:tty'
import { RushesError } from '../../errors.js'
import { onAbort, raceAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { createFirstLine } from '../../host/first-line.js'
import { groupIsAlive } from '../../host/processes.js'
import { describeReason } from '../../host/system-error.js'
import type { Env } from '../process/io.js'

export interface KeyCommandOptions {
  /** Names the command in errors. */
  readonly what: string
  readonly env: Env
  readonly signal: AbortSignal
  readonly clock: Pick<Clock, 'sleep'>
  /** Whether the command writes to standard error itself. If not, the first line of it is in the message of a failure. */
  readonly showsStderr: boolean
  /** Of the line that is returned. */
  readonly maxBytes: number
}

const MAX_REASON_BYTES = 300

/** From SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const POLL_MS = 20

/**
 * The first line of the command's output. On a terminal the command can ask the user. Elsewhere its standard input is
 * empty, because that of rushes may be ids or a prompt, and everything that it started ends with it. Throws
 * `no_api_key`, or the signal's reason.
 */
export async function runKeyCommand(
  command: string,
  { what, env, signal, clock, showsStderr, maxBytes }: KeyCommandOptions,
): Promise<string> {
  const failed = (how: string) => new RushesError('no_api_key', `${what} ${how}`)
  signal.throwIfAborted()
  const isWindows = process.platform === 'win32'
  const isInteractive = isatty(0)
  // In a group of its own it would lose the terminal.
  const isGroup = !isInteractive && !isWindows
  const stdio: StdioOptions = [isInteractive ? 'inherit' : 'ignore', 'pipe', showsStderr ? 'inherit' : 'pipe']
  const [shell, flag] = isWindows ? ['cmd.exe', '/c'] : ['/bin/sh', '-c']
  const child = spawn(shell, [flag, command], { env: { ...env }, detached: isGroup, stdio })
  const [line, reason] = [createFirstLine(maxBytes), createFirstLine(MAX_REASON_BYTES)]
  // All of it is read: a command that cannot write its second line fails.
  child.stdout?.on('data', line.add)
  child.stderr?.on('data', reason.add)
  const closed = once(child, 'close')
  closed.catch(() => {})
  const end = () => endProcess(child, isGroup, clock)
  let ending: Promise<void> | undefined
  const forget = onAbort(signal, () => {
    ending = end()
  })
  try {
    const [code, killedBy] = await raceAbort(once(child, 'exit'), signal)
    if (isGroup) await end()
    // What it printed may still be in the pipe.
    if (!line.isWhole) await raceAbort(closed, signal)
    if (code === 0) return line.text
    const how = killedBy === null ? `failed with exit code ${code}` : `was ended by ${killedBy}`
    throw failed(reason.text.trim() === '' ? `${how}.` : `${how}: ${reason.text.trim()}`)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof RushesError ? error : failed(`could not be started: ${describeReason(error)}.`)
  } finally {
    forget()
    await ending
    child.stdout?.destroy()
    child.stderr?.destroy()
    child.unref()
  }
}

/** With what it left behind, where it has a process group. Waits until nothing of it is left, or has ended it by SIGKILL. */
async function endProcess(child: ChildProcess, isGroup: boolean, clock: Pick<Clock, 'sleep'>): Promise<void> {
  const { pid } = child
  if (pid === undefined) return
  const isRunning = () => (isGroup ? groupIsAlive(pid) : child.exitCode === null && child.signalCode === null)
  const send = (name: NodeJS.Signals) => {
    try {
      if (isRunning()) process.kill(isGroup ? -pid : pid, name)
    } catch {
      // It ended in the same moment.
    }
  }
  send('SIGTERM')
  for (let waitedMs = 0; waitedMs < KILL_AFTER_MS && isRunning(); waitedMs += POLL_MS)
    await clock.sleep(POLL_MS)
  send('SIGKILL')
}

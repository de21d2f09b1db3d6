/** Runs the command that prints the API key, such as a password manager. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { isatty } from 'node:tty'
import { RushesError } from '../../errors.js'
import { onAbort, raceAbort } from '../../host/abort.js'
import { createFirstLine } from '../../host/first-line.js'
import { describeReason } from '../../host/system-error.js'
import type { Env } from '../process/io.js'

export interface KeyCommandOptions {
  /** Names the command in errors. */
  readonly what: string
  readonly env: Env
  readonly signal: AbortSignal
  /** Whether the command writes to standard error itself. If not, the first line of it is in the message of a failure. */
  readonly showsStderr: boolean
  /** Of the line that is returned. */
  readonly maxBytes: number
}

const MAX_REASON_BYTES = 300

/**
 * The first line of the command's output. On a terminal the command can ask the user. Elsewhere its standard input is empty, because
 * that of rushes may be ids or a prompt, and everything that it started ends with it. Throws `no_api_key`, or the signal's reason.
 */
export async function runKeyCommand(
  command: string,
  { what, env, signal, showsStderr, maxBytes }: KeyCommandOptions,
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
  const end = () => endProcess(child, isGroup)
  const forget = onAbort(signal, end)
  try {
    const [code, killedBy] = await raceAbort(once(child, 'exit'), signal)
    if (isGroup) end()
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
    child.stdout?.destroy()
    child.stderr?.destroy()
    child.unref()
  }
}

/** With what it left behind, where it has a process group. */
function endProcess({ pid }: ChildProcess, isGroup: boolean): void {
  try {
    if (pid !== undefined) process.kill(isGroup ? -pid : pid, 'SIGTERM')
  } catch {
    // Nothing of it is left.
  }
}

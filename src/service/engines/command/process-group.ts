/**
 * A shell command as the leader of its own process group, so that it can be ended with everything that it started, and
 * so that Ctrl-C at the terminal reaches the service alone, which then ends the command.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../../host/clock.js'
import { groupIsAlive } from '../../../host/processes.js'
import { settlesWithin } from '../../settles-within.js'
import { readStderrTail } from '../stderr-tail.js'

export interface CommandLine {
  /** For `sh -c`. */
  readonly command: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Written to standard input, which is then closed. */
  readonly stdin: string
}

export interface CommandEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of standard error. */
  readonly stderrTail: string
}

export interface Group {
  /** Resolves when the command has ended and nothing of its group is left. Rejects when it cannot be started. */
  readonly ended: Promise<CommandEnd>
  /** SIGTERM to the whole group, and SIGKILL to what is left of it a little later. */
  end(): void
}

/** From SIGTERM to SIGKILL. */
export const KILL_AFTER_MS = 2_000
const POLL_MS = 20
/** How long to read standard error after the command has ended: a process that left the group may keep it open. */
const STDERR_GRACE_MS = 200

/**
 * Runs the command beside a watcher that reads a pipe from the service. A service that is killed with -9 cannot end
 * the group, but its end of the pipe closes, and the watcher ends the group instead.
 */
const WITH_WATCHER = `
(read -r _ <&3; trap '' TERM; kill -TERM 0; sleep 2; kill -KILL 0) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
sh -c "$1"
code=$?
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$code"`

export function startGroup(
  { command, env, stdin }: CommandLine,
  clock: Pick<Clock, 'alarm' | 'sleep'>,
): Group {
  const child = spawn('sh', ['-c', WITH_WATCHER, 'rushes-engine', command], {
    env: { ...env },
    detached: true,
    // Standard output is not used: the outputs are files.
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
  })
  const words = readStderrTail(child.stderr)
  feed(child.stdin, stdin)
  const lifeline = child.stdio[3] as Writable & Readable
  lifeline.on('error', () => {})

  const isAlive = (): boolean => child.pid !== undefined && groupIsAlive(child.pid)

  function send(signal: NodeJS.Signals): void {
    try {
      if (child.pid !== undefined && isAlive()) process.kill(-child.pid, signal)
    } catch {
      // It ended in the same moment.
    }
  }

  function end(): void {
    send('SIGTERM')
    clock.alarm(KILL_AFTER_MS, () => send('SIGKILL'))
  }

  async function waitForEnd(): Promise<CommandEnd> {
    const closed = once(child, 'close')
    closed.catch(() => {})
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    // A background process of the command could still write to the folder.
    if (isAlive()) end()
    for (let waitedMs = 0; isAlive() && waitedMs <= KILL_AFTER_MS; waitedMs += POLL_MS)
      await clock.sleep(POLL_MS)
    await settlesWithin(STDERR_GRACE_MS, closed, clock)
    for (const stream of [child.stdin, child.stderr, lifeline]) stream?.destroy()
    return { code, signal, stderrTail: words.text }
  }

  return { ended: waitForEnd(), end }
}

/** It is not an error when the command does not read its input. */
function feed(stdin: Writable | null, text: string): void {
  stdin?.on('error', () => {})
  stdin?.end(text)
}

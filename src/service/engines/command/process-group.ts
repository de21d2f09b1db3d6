/**
 * A shell command as the leader of a process group of its own, so that it can be ended with everything that it
 * started, and so that Ctrl-C at the terminal reaches the service alone, which decides what becomes of the run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../../host/clock.js'
import { groupIsAlive } from '../../../host/processes.js'
import { settlesWithin } from '../../settles-within.js'
import { hearLastWords } from '../stderr-tail.js'

export interface CommandLine {
  /** For `sh -c`. */
  readonly command: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Goes to standard input, which is then closed. */
  readonly stdin: string
}

export interface CommandEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of standard error. */
  readonly lastWords: string
}

export interface Group {
  /** Resolves when the command has ended and nothing of its group is left. Rejects when it cannot be started. */
  readonly ended: Promise<CommandEnd>
  /** SIGTERM to the whole group, and SIGKILL to what is left of it a little later. */
  end(): void
}

/** From SIGTERM to SIGKILL. */
export const KILL_AFTER_MS = 2_000
const LOOK_EVERY_MS = 20
/** How long standard error is read after the command has ended: something that left the group may hold it open. */
const LAST_WORDS_MS = 200

/**
 * Runs the command beside a watcher that holds a pipe from the service. A service that is killed with -9 can end
 * nothing any more, but its end of the pipe closes, and the watcher ends the group in its place.
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
    // Standard output is nobody's: the answer is in the files.
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
  })
  const words = hearLastWords(child.stderr)
  feed(child.stdin, stdin)
  const lifeline = child.stdio[3] as Writable & Readable
  lifeline.on('error', () => {})

  const isAlive = (): boolean => child.pid !== undefined && groupIsAlive(child.pid)

  function tell(signal: NodeJS.Signals): void {
    try {
      if (child.pid !== undefined && isAlive()) process.kill(-child.pid, signal)
    } catch {
      // It ended in the same moment.
    }
  }

  function end(): void {
    tell('SIGTERM')
    clock.alarm(KILL_AFTER_MS, () => tell('SIGKILL'))
  }

  async function endOfAll(): Promise<CommandEnd> {
    const closed = once(child, 'close')
    closed.catch(() => {})
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    // What the command left behind in the background would go on writing to its folder.
    if (isAlive()) end()
    for (let waitedMs = 0; isAlive() && waitedMs <= KILL_AFTER_MS; waitedMs += LOOK_EVERY_MS)
      await clock.sleep(LOOK_EVERY_MS)
    await settlesWithin(LAST_WORDS_MS, closed, clock)
    for (const stream of [child.stdin, child.stderr, lifeline]) stream?.destroy()
    return { code, signal, lastWords: words.said }
  }

  return { ended: endOfAll(), end }
}

/** A command that does not read what it is given is no error. */
function feed(stdin: Writable | null, text: string): void {
  stdin?.on('error', () => {})
  stdin?.end(text)
}

/** `--notify`: tells the user of a terminal that a long wait has ended, by its bell and by a notification of the desktop. */
import { spawn } from 'node:child_process'
import { printable, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'
import { isMultiplexed, programOf } from './terminal-graphics.js'

/** Waits up to this long end before the user has turned to something else. */
const MIN_WAIT_MS = 10_000
const MAX_TEXT = 200

/** Returns a function that notifies the user, if the command has waited for long. It never throws. */
export function createNotifier(ctx: Context, platform = process.platform): (text: string) => void {
  const { clock, interrupts, stderr, out, env } = ctx
  const startedAtMs = clock.monotonic()
  return (text) => {
    const isLong = clock.monotonic() - startedAtMs > MIN_WAIT_MS
    // After Ctrl-C the user is at the terminal.
    if (stderr.isTTY !== true || !isLong || interrupts.first.aborted) return
    const { codes, program } = notificationFor(env, platform, text)
    if (!out.mode.json) stderr.write(codes)
    if (program !== undefined) start(program, env)
  }
}

export interface Notification {
  /** The bell, and the escape code of a terminal that shows notifications itself. */
  readonly codes: string
  /** Program that shows the notification, with its arguments. */
  readonly program: readonly [string, ...(readonly string[])] | undefined
}

/** Returns how to notify the user of this terminal, as the environment names it. Pure. */
export function notificationFor(env: Env, platform: string, text: string): Notification {
  const has = (name: string) => variable(env, name) !== undefined
  const message = shortened(printable(text), MAX_TEXT)
  const code = codeFor(env, message)
  if (code !== undefined) return { codes: `${code}${BELL}`, program: undefined }
  // A program would notify the user of the remote machine.
  const isRemote = has('SSH_CONNECTION') || has('SSH_TTY')
  if (!isRemote && platform === 'darwin') return { codes: BELL, program: ['osascript', ...SCRIPT, message] }
  const isDesktop = platform === 'linux' && (has('DISPLAY') || has('WAYLAND_DISPLAY'))
  return {
    codes: BELL,
    program:
      isDesktop && !isRemote ? ['notify-send', '--app-name=rushes', '--', 'rushes', message] : undefined,
  }
}

const BELL = '\u0007'
const STRING_END = '\u001b\\'

/** The message is an argument of the script, so that it cannot contain commands. */
const SCRIPT = [
  ...['-e', 'on run argv'],
  ...['-e', 'display notification (item 1 of argv) with title "rushes"'],
  ...['-e', 'end run'],
]

/** OSC 9 of iTerm2, or OSC 777 of rxvt. tmux and screen do not pass them on. Undefined for other terminals. */
function codeFor(env: Env, message: string): string | undefined {
  const term = env.TERM ?? ''
  if (isMultiplexed(env)) return undefined
  if (/^(rxvt|foot)/.test(term)) return `\u001b]777;notify;rushes;${message}${STRING_END}`
  const takesOsc9 =
    /^(iterm|wezterm|ghostty)/i.test(programOf(env)) ||
    variable(env, 'KITTY_WINDOW_ID') !== undefined ||
    /kitty|ghostty/.test(term)
  return takesOsc9 ? `\u001b]9;rushes: ${message}${STRING_END}` : undefined
}

/** Variables that such a program needs. The API key is not one of them. */
const PASSED = [
  ...['PATH', 'HOME', 'USER', 'LANG', 'DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY'],
  ...['XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS'],
]

/** Starts the program, which continues after the command. A missing program is ignored. */
function start([file, ...words]: readonly [string, ...(readonly string[])], env: Env): void {
  const passed = Object.fromEntries(
    PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  )
  try {
    const child = spawn(file, words, { env: passed, stdio: 'ignore', detached: true })
    child.on('error', () => {})
    child.unref()
  } catch {
    // The bell has rung.
  }
}

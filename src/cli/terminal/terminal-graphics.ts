/** How a terminal draws pictures: the protocol that the environment names, and the size of a picture. Pure. */
import type { PictureRequest, Protocol } from '../../preview/terminal-picture.js'
import { type Env, variable } from '../process/io.js'

/**
 * Chooses the protocol. The terminal gets no question: the shell would read a late reply as typed. tmux, screen and
 * Zellij pass on the variables of the terminal outside, but keep only characters.
 */
export function protocolOf(env: Env): Protocol {
  const has = (name: string) => variable(env, name) !== undefined
  if (isMultiplexed(env)) return 'half blocks'
  if (has('KITTY_WINDOW_ID') || has('KONSOLE_VERSION') || /kitty|ghostty/.test(env.TERM ?? '')) return 'kitty'
  const program = programOf(env)
  if (/^ghostty/i.test(program)) return 'kitty'
  return /^(iterm|wezterm)/i.test(program) ? 'iterm2' : 'half blocks'
}

/** Whether tmux, screen or Zellij is between the program and the terminal. */
const isMultiplexed = (env: Env): boolean =>
  ['TMUX', 'STY', 'ZELLIJ'].some((name) => variable(env, name) !== undefined) ||
  /^(tmux|screen)/.test(env.TERM ?? '')

/** Name of the terminal. ssh passes on LC_TERMINAL, which iTerm2 sets. TERM_PROGRAM is that of the terminal itself. */
const programOf = (env: Env): string => variable(env, 'TERM_PROGRAM') ?? variable(env, 'LC_TERMINAL') ?? ''

interface Screen {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/** Assumed size of a character: a small one, so that the picture is not too large. */
const [CELL_WIDTH, CELL_HEIGHT] = [8, 16]
/** Maximum side in pixels. */
const MAX_SIDE = 2_000

/** Returns how to draw a picture: at most as wide as the window, and half as high. */
export function formFor(env: Env, screen: Screen): Omit<PictureRequest, 'path' | 'isVideo'> {
  const protocol = protocolOf(env)
  // Some containers report a width of 0.
  const columns = screen.columns || 80
  const rows = Math.max(1, Math.floor((screen.rows || 24) / 2))
  if (protocol === 'half blocks') return { protocol, width: columns, height: 2 * rows }
  const [width, height] = [Math.min(MAX_SIDE, columns * CELL_WIDTH), Math.min(MAX_SIDE, rows * CELL_HEIGHT)]
  return { protocol, width, height }
}

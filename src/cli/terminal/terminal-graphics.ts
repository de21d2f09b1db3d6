/** How a terminal draws pictures: the question to it, the protocol by its replies, and the size of a picture. Pure. */
import type { PictureRequest, Protocol } from '../../preview/terminal-picture.js'
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'
import type { Screen } from './spinner.js'

/**
 * Asks for kitty's graphics, the size of a cell, the name of the terminal, and the device attributes, which every
 * terminal answers, last. Then erases what a terminal has printed of it.
 */
export const QUESTION = `\u001b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\u001b\\\u001b[16t\u001b[>q\u001b[c\r\u001b[K`

const DEVICE_ATTRIBUTES = /\u001b\[\?([\d;]*)c/

/** Whether these are all replies to the question. */
export const isAnswered = (replies: string): boolean => DEVICE_ATTRIBUTES.test(replies)

/** Whether this is only replies, the last one perhaps incomplete. Anything else was typed. */
export const mayBeReplies = (text: string): boolean =>
  /^(?:\u001b(?:[_P][^\u001b]*(?:\u001b\\)?|\[[\d;?>]*[a-zA-Z]?)?)*$/.test(text)

/**
 * Whether the terminal may be asked. Not in tmux and screen, which keep only characters, and not in terminals that
 * print kitty's question and draw no pictures.
 */
export const mayAsk = (env: Env): boolean =>
  variable(env, 'TMUX') === undefined &&
  variable(env, 'STY') === undefined &&
  !/^(tmux|screen|linux)/.test(env.TERM ?? '') &&
  env.TERM_PROGRAM !== 'Apple_Terminal'

/** Chooses the protocol. Without replies, the environment decides; it does not show whether a terminal has sixel. */
export function protocolOf(env: Env, replies: string): Protocol {
  if (!mayAsk(env)) return 'half blocks'
  const isKitty = variable(env, 'KITTY_WINDOW_ID') !== undefined || /kitty|ghostty/.test(env.TERM ?? '')
  if (isAnswered(replies) ? replies.includes('\u001b_Gi=31;OK') : isKitty) return 'kitty'
  const [, name] = /\u001bP>\|([^\u001b]*)/.exec(replies) ?? []
  // ssh passes on LC_TERMINAL, which iTerm2 sets. TERM_PROGRAM is that of the terminal itself.
  const program = name ?? variable(env, 'TERM_PROGRAM') ?? variable(env, 'LC_TERMINAL') ?? ''
  if (/^(iterm|wezterm|mintty)/i.test(program)) return 'iterm2'
  const [, attributes = ''] = DEVICE_ATTRIBUTES.exec(replies) ?? []
  // The first number is the class of the terminal.
  return attributes.split(';').slice(1).includes('4') ? 'sixel' : 'half blocks'
}

/** Used if the terminal does not report the size of its cells: a small one, so that the picture is not too large. */
const [CELL_WIDTH, CELL_HEIGHT] = [8, 16]
/** Maximum sides in pixels. xterm draws no larger sixels. */
const MAX_SIDES = { kitty: 2_000, iterm2: 2_000, sixel: 1_000 }
/** Height of a band of sixels. Terminals fill up the last one. */
const BAND = 6

/** Returns how to draw a picture: at most as wide as the window, and half as high. */
export function formFor(env: Env, replies: string, screen: Screen): Omit<PictureRequest, 'path' | 'isVideo'> {
  const protocol = protocolOf(env, replies)
  const isTrueColour = /truecolor|24bit/.test(env.COLORTERM ?? '')
  // Some containers report a width of 0.
  const columns = screen.columns || 80
  const rows = Math.max(1, Math.floor((screen.rows || 24) / 2))
  if (protocol === 'half blocks') return { protocol, isTrueColour, width: columns, height: 2 * rows }
  const cell = /\u001b\[6;([1-9]\d{0,2});([1-9]\d{0,2})t/.exec(replies)
  const side = MAX_SIDES[protocol]
  const width = Math.min(side, columns * Number(cell?.[2] ?? CELL_WIDTH))
  const height = Math.min(side, rows * Number(cell?.[1] ?? CELL_HEIGHT))
  return {
    protocol,
    isTrueColour,
    width,
    height: protocol === 'sixel' ? Math.max(BAND, height - (height % BAND)) : height,
  }
}

/** The protocol that a terminal gets, and how large a picture becomes. */
import { describe, expect, it } from 'vitest'
import {
  formFor,
  isAnswered,
  mayAsk,
  mayBeReplies,
  protocolOf,
  QUESTION,
} from '../../src/cli/terminal/terminal-graphics.js'

const ESC = '\u001b'

/** Replies to the question, in the order in which terminals send them. */
const KITTY = `${ESC}_Gi=31;OK${ESC}\\${ESC}[6;20;10t${ESC}P>|kitty(0.35.2)${ESC}\\${ESC}[?62;c`
const ITERM2 = `${ESC}[6;34;16t${ESC}P>|iTerm2 3.5.4${ESC}\\${ESC}[?64;1;2;4;6;17;18;21;22c`
const WEZTERM = `${ESC}[6;18;8t${ESC}P>|WezTerm 20240203${ESC}\\${ESC}[?65;4;6;18;22c`
const FOOT = `${ESC}[6;18;9t${ESC}P>|foot(1.16.2)${ESC}\\${ESC}[?62;4;22c`
const WITHOUT = `${ESC}_Gi=31;ENOSYS:no${ESC}\\${ESC}P>|VTE(7600)${ESC}\\${ESC}[?65;1;9c`
/** Of tmux 3.3, recorded. The first number is the class of the terminal. */
const TMUX = `${ESC}[?1;2c`

describe('the protocol', () => {
  it.each([
    [{}, KITTY, 'kitty'],
    [{}, ITERM2, 'iterm2'],
    [{}, WEZTERM, 'iterm2'],
    [{}, FOOT, 'sixel'],
    [{}, WITHOUT, 'half blocks'],
    [{}, TMUX, 'half blocks'],
    [{}, `${ESC}[?4c`, 'half blocks'],
    [{}, '', 'half blocks'],
    // What is typed meanwhile does no harm.
    [{}, `ls\r${KITTY}4`, 'kitty'],
    // Without replies, the environment decides.
    [{ KITTY_WINDOW_ID: '1' }, '', 'kitty'],
    [{ TERM: 'xterm-kitty' }, '', 'kitty'],
    [{ TERM: 'xterm-ghostty' }, '', 'kitty'],
    [{ TERM_PROGRAM: 'iTerm.app' }, '', 'iterm2'],
    [{ TERM_PROGRAM: 'WezTerm' }, '', 'iterm2'],
    [{ LC_TERMINAL: 'iTerm2' }, '', 'iterm2'],
    // The replies of the terminal count more than what it inherited.
    [{ KITTY_WINDOW_ID: '1' }, FOOT, 'sixel'],
    [{ TERM_PROGRAM: 'vscode', LC_TERMINAL: 'iTerm2' }, TMUX, 'half blocks'],
    [{ TMUX: '/tmp/tmux-0/default,1,0' }, KITTY, 'half blocks'],
    [{ STY: '1.pts', KITTY_WINDOW_ID: '1' }, '', 'half blocks'],
    [{ TERM: 'screen-256color' }, FOOT, 'half blocks'],
    [{ TERM_PROGRAM: 'Apple_Terminal' }, '', 'half blocks'],
  ] as const)('%j, %j: %s', (env, replies, protocol) => {
    expect(protocolOf(env, replies)).toBe(protocol)
  })

  it('is asked for where a question does no harm, and the device attributes end the replies', () => {
    expect(mayAsk({ TERM: 'xterm-256color' })).toBe(true)
    expect(mayAsk({ TERM: 'tmux-256color' })).toBe(false)
    expect(mayAsk({ TERM: 'linux' })).toBe(false)
    expect(QUESTION.endsWith(`${ESC}[c\r${ESC}[K`)).toBe(true)
    expect(isAnswered(KITTY.slice(0, -1))).toBe(false)
    expect(isAnswered(KITTY)).toBe(true)
  })

  it('replies are told from typed keys, in linear time', () => {
    for (const replies of [KITTY, ITERM2, WEZTERM, FOOT, WITHOUT, TMUX])
      for (let length = 0; length <= replies.length; length++)
        expect(mayBeReplies(replies.slice(0, length))).toBe(true)
    for (const typed of ['a', '\r', `${TMUX}ls`, `${ESC}[6~`, `${ESC}[6~`.repeat(50_000)])
      expect(mayBeReplies(typed)).toBe(false)
  })
})

describe('the size', () => {
  it.each([
    ['half blocks', TMUX, { columns: 80, rows: 24 }, [80, 24]],
    ['half blocks', TMUX, { columns: 80, rows: 25 }, [80, 24]],
    ['half blocks', TMUX, { columns: 20, rows: 1 }, [20, 2]],
    ['half blocks', TMUX, { columns: 0, rows: undefined }, [80, 24]],
    ['kitty', KITTY, { columns: 80, rows: 24 }, [800, 240]],
    ['kitty', KITTY, { columns: 500, rows: 300 }, [2_000, 2_000]],
    ['iterm2', ITERM2, { columns: 80, rows: 24 }, [1_280, 408]],
    // The cells are not known, or not believed.
    ['iterm2', `${ESC}P>|iTerm2 3.4${ESC}\\${ESC}[?1;2c`, { columns: 80, rows: 24 }, [640, 192]],
    ['sixel', `${ESC}[6;0;0t${ESC}[?62;4c`, { columns: 80, rows: 24 }, [640, 192]],
    ['sixel', FOOT, { columns: 500, rows: 30 }, [1_000, 270]],
    // Whole bands of six rows.
    ['sixel', `${ESC}[6;17;9t${ESC}[?62;4c`, { columns: 80, rows: 25 }, [720, 204]],
    ['sixel', `${ESC}[6;19;9t${ESC}[?62;4c`, { columns: 80, rows: 10 }, [720, 90]],
  ] as const)('of %s, %j in %j: %j', (protocol, replies, screen, [width, height]) => {
    expect(formFor({}, replies, screen)).toEqual({ protocol, width, height, isTrueColour: false })
  })

  it.each([
    ['truecolor', true],
    ['24bit', true],
    ['', false],
    [undefined, false],
  ])('COLORTERM=%s: 24 bits of colour %s', (COLORTERM, isTrueColour) => {
    expect(formFor({ COLORTERM }, '', { columns: 80, rows: 24 })).toMatchObject({ isTrueColour })
  })
})

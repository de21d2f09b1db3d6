/** The protocol that a terminal gets, and how large a picture becomes. */
import { expect, it } from 'vitest'
import { formFor, protocolOf } from '../../src/cli/terminal/terminal-graphics.js'

it.each([
  [{}, 'half blocks'],
  [{ TERM: 'xterm-kitty' }, 'kitty'],
  [{ TERM_PROGRAM: 'ghostty' }, 'kitty'],
  [{ KONSOLE_VERSION: '230805' }, 'kitty'],
  [{ TERM_PROGRAM: 'iTerm.app' }, 'iterm2'],
  [{ TERM_PROGRAM: 'WezTerm' }, 'iterm2'],
  [{ LC_TERMINAL: 'iTerm2' }, 'iterm2'],
  [{ TERM_PROGRAM: 'vscode', LC_TERMINAL: 'iTerm2' }, 'half blocks'],
  [{ TMUX: '/tmp/tmux-0/default,1,0', KITTY_WINDOW_ID: '1' }, 'half blocks'],
  [{ STY: '1.pts', KITTY_WINDOW_ID: '1' }, 'half blocks'],
  [{ TERM: 'screen-256color', TERM_PROGRAM: 'iTerm.app' }, 'half blocks'],
] as const)('a terminal with the variables %j gets pictures as %s', (env, protocol) => {
  expect(protocolOf(env, 'auto')).toBe(protocol)
})

it.each([
  ['kitty', 'kitty'],
  ['iterm2', 'iterm2'],
  ['blocks', 'half blocks'],
] as const)(
  'the setting `show` = %s names the protocol of pictures, whatever the variables are',
  (setting, protocol) => {
    for (const env of [{}, { TMUX: '1' }, { TERM: 'xterm-kitty' }, { TERM_PROGRAM: 'iTerm.app' }])
      expect(protocolOf(env, setting)).toBe(protocol)
  },
)

it.each([
  ['blocks', { columns: 80, rows: 24 }, [80, 24]],
  ['blocks', { columns: 80, rows: 25 }, [80, 24]],
  ['blocks', { columns: 20, rows: 1 }, [20, 2]],
  ['blocks', { columns: 0, rows: undefined }, [80, 24]],
  ['kitty', { columns: 80, rows: 24 }, [640, 192]],
  ['iterm2', { columns: 500, rows: 300 }, [2_000, 2_000]],
] as const)(
  'a picture drawn as %s on a terminal of %j has the size %j',
  (setting, screen, [width, height]) => {
    expect(formFor({}, setting, screen)).toMatchObject({ width, height })
  },
)

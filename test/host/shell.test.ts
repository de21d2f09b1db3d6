/** Words for the shell of the user. */
import { expect, it } from 'vitest'
import { quoteWord, type Shell, shellOf, variableLine } from '../../src/host/shell.js'

it.each([
  ['posix', 'linux', { PROMPT: '%' }],
  ['posix', 'darwin', {}],
  ['posix', undefined, undefined],
  ['posix', 'win32', { SHELL: '/usr/bin/bash', PROMPT: '$P$G' }],
  ['cmd', 'win32', { PROMPT: '$P$G' }],
  ['powershell', 'win32', { PSModulePath: 'C:\\' }],
])('the shell of the user is %s on %s with %j', (shell, platform, env) => {
  expect(shellOf({ ...(platform && { platform }), ...(env && { env }) })).toBe(shell)
})

it.each<[Shell, string, string, string]>([
  ['posix', 'C:\\out', `'C:\\out'`, `export NAME='C:\\out'`],
  ['cmd', 'C:\\out', 'C:\\out', 'set "NAME=C:\\out"'],
  ['powershell', 'C:\\out', 'C:\\out', `$env:NAME = 'C:\\out'`],
  ['cmd', 'a red fox', '"a red fox"', 'set "NAME=a red fox"'],
  ['powershell', 'a fox for $5', `'a fox for $5'`, `$env:NAME = 'a fox for $5'`],
  ['powershell', "it's\nred", `'it''s\nred'`, `$env:NAME = 'it''s\nred'`],
  ['cmd', '-x', '"-x"', 'set "NAME=-x"'],
])('the shell %s quotes %j as %s, and sets it with %s', (shell, value, word, line) => {
  expect([quoteWord(value, shell), variableLine('NAME', value, shell)]).toEqual([word, line])
})

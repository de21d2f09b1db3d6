/** docs/schemas. `runCli` and `rushes` of test/support hold the JSON of every command line of the tests against them. */
import { expect, it } from 'vitest'
import { fullName } from '../src/cli/help/format-help.js'
import { CONFIG_KEYS } from '../src/cli/settings/table.js'
import { EXIT } from '../src/errors.js'
import { everyCommand, read } from './support/project.js'
import { misfitsOf, nameOfAnswer, SCHEMAS, validatorOf } from './support/schemas.js'

it('docs/schemas contains only valid schemas, which its README lists by title', () => {
  const titles = [...SCHEMAS].map(([name, { title }]) => [name, title])
  const rows = read('docs/schemas/README.md').matchAll(/^\| \[(.+)\.json\]\(\1\.json\) \| (.+) \|$/gm)
  const listed = [...rows].map(([, name, of = '']) => [name, `rushes: ${of.replace(/[`\\]/g, '')}`])
  expect(listed.sort()).toEqual(titles.sort())
  for (const name of SCHEMAS.keys()) expect(validatorOf(name)).toBeTypeOf('function')
})

it('docs/schemas contains a schema for each command that prints JSON', async () => {
  const silent = /^(login|logout|completion|mcp|config (set|unset)|help)\b/
  const lines = (await everyCommand())
    .filter((command) => command.commands.length === 0 && command.parent !== null)
    .map((command) => fullName(command).replace(/^rushes /, ''))
    .filter((line) => !silent.test(line))
  expect(lines.length).toBeGreaterThan(30)
  const names = lines.map((line) => [line, nameOfAnswer([...line.split(' '), '--json'], {})] as const)
  expect(names.filter(([, name]) => !SCHEMAS.has(name))).toEqual([])
})

it('docs/schemas contains each exit code and each setting', () => {
  const text = (name: string) => JSON.stringify(SCHEMAS.get(name))
  const codes = Object.values(EXIT).filter((code) => code !== EXIT.ok)
  expect(text('error')).toContain(`"enum":[${codes}]`)
  expect(CONFIG_KEYS.filter((key) => !text('config-list').includes(`"${key}":`))).toEqual([])
})

const error = { code: 'usage', message: 'x', hint: null, http_status: null, exit_code: 2, run_id: null }
const misfits = (stderr: string, stdout = '') => misfitsOf(['status', 'a', '--json'], { stdout, stderr })

it('a test that prints JSON passes with the documented keys', () => {
  expect(misfits(`${JSON.stringify({ error })}\n`)).toEqual([])
  expect(misfitsOf(['status', 'a'], { stdout: 'x', stderr: 'y' })).toEqual([])
})

it.each([
  ['a value that the schema forbids', JSON.stringify({ error: { ...error, exit_code: 99 } }), ''],
  ['an unknown key', JSON.stringify({ error: { ...error, more: 1 } }), ''],
  ['plain words', 'warning: plain words', ''],
  ['a missing key', '', '{"id":"a"}'],
])('a test that prints JSON fails with %s', (_, stderr, stdout) =>
  expect(misfits(`${stderr}\n`, `${stdout}\n`)).not.toEqual([]),
)

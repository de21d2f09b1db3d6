/** `rushes forget`: which rows it removes, and when it asks first. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { RunEstimate } from '../../src/journal/rows.js'
import {
  addRow,
  createHome,
  type HomeOptions,
  outputOf,
  usageErrorOf,
  withJournal,
} from '../support/index.js'

const NOTHING: RunEstimate = { millionths: 0, currency: 'credits' }
const TERMINAL = { stdin: true, stderr: true }

const A = 'https://a.example'
const URLS = ['https://cdn.example.com/1.png']
/** A row of each kind: finished and unfinished, local and not. */
const ROWS = [
  { id: 'done_a', address: A, urls: URLS },
  { id: 'going_a', address: A },
  { id: 'done_local', address: 'local', urls: URLS },
  { id: 'going_local', address: 'local', estimate: NOTHING },
]

/** A home, by default with these rows and without the settings of a service. */
function open(options: HomeOptions = {}) {
  const { rows, ...home } = createHome({ journal: ROWS, env: {}, ...options })
  return { ...home, rows, names: () => rows().map(({ id, key }) => id ?? key) }
}

function openUnconfirmed() {
  const home = open({ journal: [{}] })
  return { ...home, key: home.names()[0] ?? '' }
}

it('forget of an id that is the key of an unconfirmed row without its ~ removes the run of this id', async () => {
  const { home, run, names, key } = openUnconfirmed()
  const id = key.slice(1)
  addRow(home, { id })
  expect(await run(`forget ${id} --yes`)).toMatchObject({
    code: 0,
    stderr: `Removed ${id} from the journal.\n`,
  })
  expect(names()).toEqual([key])
  // Also at another address, and in each command that takes a run.
  addRow(home, { id, address: A })
  expect(JSON.parse(outputOf(await run(`show ${id} --json`)))).toMatchObject({ id })
  await run(`forget ${id} --yes`)
  expect(names()).toEqual([key])
})

it('forget --yes removes an unconfirmed row, by its key with and without ~', async () => {
  for (const from of [0, 1]) {
    const { run, names, key } = openUnconfirmed()
    expect(await run(`forget ${key.slice(from)} --yes`)).toMatchObject({
      ...{ code: 0, stdout: '', stderr: `Removed ${key} from the journal.\n` },
    })
    expect(names()).toEqual([])
  }
})

const hosted = (estimate?: RunEstimate) => open({ journal: [{ id: 'hosted', address: 'local', estimate }] })

it.each([
  ['unconfirmed', openUnconfirmed],
  ['not finished', () => ({ ...open(), key: 'going_a' })],
  ['not finished', () => ({ ...hosted({ millionths: 25_000, currency: 'USD' }), key: 'hosted' })],
  ['not finished', () => ({ ...hosted(), key: 'hosted' })],
])('forget in a pipe refuses a run that is %s and may cost money', async (_, openOne) => {
  const { run, names, key } = openOne()
  const message = usageErrorOf(await run(`forget ${key}`))
  expect(message).toContain(`error: Unfinished or unconfirmed: ${key}. They may cost money`)
  expect(message).toContain('add --yes')
  expect(names()).toContain(key)
})

it.each([
  ['y\n', 0, 0],
  ['YES\n', 0, 0],
  ['\n', 2, 1],
])('forget on a terminal asks before it removes an unconfirmed row: %j', async (stdin, exit, left) => {
  const { run, names, key } = openUnconfirmed()
  const { code, stdout, stderr } = await run(`forget ${key}`, { stdin, tty: TERMINAL })
  expect({ code, stdout, left: names().length }).toEqual({ code: exit, stdout: '', left })
  expect(stderr).toContain(`Unfinished or unconfirmed: ${key}.`)
  expect(stderr).toContain('Remove 1 run from the journal? [y/N] ')
})

it('forget leaves a row that has changed while the question was open, and says so', async () => {
  const { home, run, names, key } = openUnconfirmed()
  let hasAnswered = false
  const { code, stderr } = await run(`forget ${key}`, {
    ...{ stdin: 'y\n', tty: TERMINAL },
    onStderr(text) {
      if (hasAnswered || !text.includes('Remove 1 run from the journal? [y/N] ')) return
      hasAnswered = true
      withJournal(home, (journal) =>
        journal.accepted({ row: journal.list({})[0]?.row ?? 0, key }, { id: 'run_late' }),
      )
    },
  })
  expect(code).toBe(2)
  expect(stderr).toContain(`error: ${key} was not removed: it has changed meanwhile (run_late, accepted).`)
  expect(stderr).not.toContain('Removed')
  expect(names()).toEqual(['run_late'])
})

it('forget --json asks nothing, and leaves an unconfirmed row', async () => {
  const { run, names, key } = openUnconfirmed()
  usageErrorOf(await run(`forget ${key} --json`, { stdin: 'y\n', tty: TERMINAL }))
  expect(names()).toEqual([key])
})

it.each([
  ['done_a', 'going_local done_local going_a'],
  ['--finished --yes', 'going_local going_a'],
  ['--local --all --yes', 'going_a done_a'],
  ['--local --finished --yes', 'going_local going_a done_a'],
  ['--local going_local', 'done_local going_a done_a'],
  ['--local --last', 'done_local going_a done_a'],
  ['--base-url https://a.example --finished --yes', 'going_local done_local going_a'],
  ['--before 30d --yes', 'going_local done_local going_a done_a'],
  ['--before 12h --yes', ''],
  ['--all --yes', ''],
])('forget %s leaves %j', async (words, left) => {
  const { run, names } = open()
  outputOf(await run(`forget ${words}`))
  expect(names().join(' ')).toBe(left)
})

it.each([
  ['--yes', {}],
  ['--yes', { RUSHES_LOCAL: 'on' }],
  ['--local --yes', {}],
])('forget %s with the environment %j selects no run, and removes none', async (words, env) => {
  const { run, rows } = open({ env })
  expect(usageErrorOf(await run(`forget ${words}`))).toContain('error: Missing run ids.')
  expect(rows()).toHaveLength(4)
})

it.each(['--all', '--finished', '--before 12h'])(
  'forget %s asks on a terminal with the number of its rows, and removes none in a pipe',
  async (words) => {
    const { run, rows } = open()
    expect(usageErrorOf(await run(`forget ${words}`))).toContain('add --yes')
    const asked = await run(`forget ${words}`, { stdin: 'n\n', tty: TERMINAL })
    expect(usageErrorOf(asked)).toMatch(/Remove [24] runs from the journal\? \[y\/N\] /)
    expect(rows()).toHaveLength(4)
  },
)

it('forget --json prints the removed runs, and a name that is not known removes none', async () => {
  const { run, rows } = open()
  expect(usageErrorOf(await run('forget done_a ~0000000'))).toContain('~0000000 is not in the journal.')
  expect(rows()).toHaveLength(4)
  expect(outputOf(await run('forget done_a done_local --json'))).toBe(
    '{"forgotten":"done_a"}\n{"forgotten":"done_local"}\n',
  )
})

it.each(['done_a --finished', 'done_a --last', '--before 30', '--before 0'])(
  'forget %s is a usage error, and removes nothing',
  async (words) => {
    const { run, rows } = open()
    usageErrorOf(await run(`forget ${words} --yes`))
    expect(rows()).toHaveLength(4)
  },
)

it('forget leaves the files of a run', async () => {
  const { home, run } = open()
  const path = join(home, 'fox.png')
  writeFileSync(path, 'fox')
  addRow(home, { id: 'with_file', address: 'local', estimate: NOTHING, files: [{ path }] })
  outputOf(await run('forget with_file'))
  expect(existsSync(path)).toBe(true)
})

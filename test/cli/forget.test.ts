/** `rushes forget`: which rows it removes, and when it asks first. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunEstimate } from '../../src/journal/rows.js'
import { runCli, SET, scripted } from '../support/cli.js'
import { addRow, finishedState, rowsOf, withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const NOTHING: RunEstimate = { millionths: 0, currency: 'credits' }
interface Settings {
  readonly env?: Readonly<Record<string, string>>
  readonly words?: readonly string[]
}
const TERMINAL = { stdin: true, stderr: true }
const namesIn = (home: string) => rowsOf(home).map(({ id, key }) => id ?? key)

async function withUnconfirmed() {
  const home = temporaryFolder()
  await runCli('run image "a fox"', { fetch: scripted({ status: 500 }).fetch, home, env: SET })
  return { home, key: rowsOf(home)[0]?.key ?? '' }
}

/** A row of each kind: finished and unfinished, local and not. */
function withRows() {
  const home = temporaryFolder()
  const finish = (address: string, id: string) =>
    addRow(home, { id, address }, (journal) =>
      journal.status(address, { state: finishedState(id, ['https://cdn.example.com/1.png']) }),
    )
  finish('https://a.example', 'done_a')
  addRow(home, { id: 'going_a', address: 'https://a.example' })
  finish('local', 'done_local')
  addRow(home, { id: 'going_local', address: 'local', estimate: NOTHING })
  return home
}

/** An unfinished run of a hosted model with `--local`. */
function localRow(estimate: RunEstimate | undefined) {
  const home = temporaryFolder()
  addRow(home, { id: 'going_hosted', address: 'local', estimate })
  return { home, key: 'going_hosted' }
}

describe('the id of a run that is also the key of another row without its ~', () => {
  it('names the run: the unconfirmed row stays', async () => {
    const { home, key } = await withUnconfirmed()
    const id = key.slice(1)
    addRow(home, { id, address: SET.RUSHES_BASE_URL ?? '' })
    const ran = await runCli(`forget ${id} --yes`, { home, env: SET })
    expect(ran).toMatchObject({ code: 0, stderr: `Removed ${id} from the journal.\n` })
    expect(namesIn(home)).toEqual([key])
    // Also at another address, and in each command that takes a run.
    addRow(home, { id, address: 'https://a.example' })
    expect(JSON.parse((await runCli(`show ${id} --json`, { home, env: SET })).stdout)).toMatchObject({
      id,
    })
    await runCli(`forget ${id} --yes`, { home, env: SET })
    expect(namesIn(home)).toEqual([key])
  })
})

describe('a row that may cost money', () => {
  it.each([(key: string) => key, (key: string) => key.slice(1)])('is removed with --yes', async (written) => {
    const { home, key } = await withUnconfirmed()
    const ran = await runCli(['forget', written(key), '--yes'], { home })
    expect(ran).toMatchObject({ code: 0, stdout: '', stderr: `Removed ${key} from the journal.\n` })
    expect(rowsOf(home)).toEqual([])
  })

  it.each([
    ['unconfirmed', async () => withUnconfirmed()],
    ['not finished', async () => ({ home: withRows(), key: 'going_a' })],
    ['not finished', async () => localRow({ millionths: 25_000, currency: 'USD' })],
    ['not finished', async () => localRow(undefined)],
  ])('is exit 2 in a pipe when it is %s, and stays', async (what, open) => {
    const { home, key } = await open()
    const { code, stderr } = await runCli(`forget ${key}`, { home })
    expect(code).toBe(2)
    expect(stderr).toMatch(new RegExp(`error: ${key} is ${what} \\((http|local\\))`))
    expect(stderr).toContain('add --yes')
    expect(namesIn(home)).toContain(key)
  })

  it.each([
    ['y\n', 0, false],
    ['YES\n', 0, false],
    ['\n', 2, true],
  ])('is asked for on a terminal: %j', async (stdin, exit, stays) => {
    const { home, key } = await withUnconfirmed()
    const { code, stdout, stderr } = await runCli(`forget ${key}`, { home, stdin, tty: TERMINAL })
    expect({ code, stdout, stays: rowsOf(home).length > 0 }).toEqual({ code: exit, stdout: '', stays })
    expect(stderr).toContain(`${key} is unconfirmed`)
    expect(stderr).toContain('Remove it? [y/N] ')
  })

  it('stays, with a message, when it gets its id while the question is open', async () => {
    const { home, key } = await withUnconfirmed()
    let hasAnswered = false
    const { code, stderr } = await runCli(`forget ${key}`, {
      ...{ home, stdin: 'y\n', tty: TERMINAL },
      onStderr(text) {
        if (hasAnswered || !text.includes('Remove it? [y/N] ')) return
        hasAnswered = true
        withJournal(home, (journal) =>
          journal.accepted({ row: journal.list({})[0]?.row ?? 0, key }, { id: 'run_late' }),
        )
      },
    })
    expect(code).toBe(2)
    expect(stderr).toContain(`error: ${key} was not removed: it has changed meanwhile (run_late, accepted).`)
    expect(stderr).not.toContain('Removed')
    expect(namesIn(home)).toEqual(['run_late'])
  })

  it('stays under --json, which asks nothing', async () => {
    const { home, key } = await withUnconfirmed()
    const ran = await runCli(`forget ${key} --json`, { home, stdin: 'y\n', tty: TERMINAL })
    expect(ran.code).toBe(2)
    expect(rowsOf(home)).toHaveLength(1)
  })
})

describe('the rows that are removed', () => {
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
  ])('%j leaves %j', async (words, left) => {
    const home = withRows()
    expect((await runCli(['forget', ...words.split(' ')], { home })).code).toBe(0)
    expect(namesIn(home).join(' ')).toBe(left)
  })

  it.each([
    ['RUSHES_LOCAL', { env: { RUSHES_LOCAL: 'on' } }],
    ['--local', { words: ['--local'] }],
  ])('are none without a selection, with %s', async (_, { env = {}, words = [] }: Settings) => {
    const home = withRows()
    const ran = await runCli(['forget', ...words, '--yes'], { home, env })
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('error: Missing run ids.') })
    expect(rowsOf(home)).toHaveLength(4)
  })

  it.each([['--all'], ['--finished'], ['--before', '12h']])(
    'are counted before %s removes them, and stay where nobody can be asked',
    async (...words) => {
      const home = withRows()
      const piped = await runCli(['forget', ...words], { home })
      expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') })
      const asked = await runCli(['forget', ...words], { home, stdin: 'n\n', tty: TERMINAL })
      expect(asked.code).toBe(2)
      expect(asked.stderr).toMatch(/Remove all [24]\? \[y\/N\] /)
      expect(rowsOf(home)).toHaveLength(4)
    },
  )

  it('are named as JSON; with a name that is not known, none is removed', async () => {
    const home = withRows()
    const unknown = await runCli('forget done_a ~0000000', { home })
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('~0000000 is not in the journal.'),
    })
    expect(rowsOf(home)).toHaveLength(4)
    const ran = await runCli('forget done_a done_local --json', { home })
    expect(ran).toMatchObject({ code: 0, stdout: '{"forgotten":"done_a"}\n{"forgotten":"done_local"}\n' })
  })

  it.each([
    [[]],
    [['done_a', '--finished']],
    [['done_a', '--last']],
    [['--before', '30']],
    [['--before', '0']],
  ])('%j is exit 2, and nothing is removed', async (words) => {
    const home = withRows()
    expect((await runCli(['forget', ...words, '--yes'], { home })).code).toBe(2)
    expect(rowsOf(home)).toHaveLength(4)
  })

  it('leave the files of their results', async () => {
    const home = withRows()
    const path = join(home, 'fox.png')
    writeFileSync(path, 'fox')
    const file = { path, bytes: 3, sha256: '', url: '', content_type: 'image/png' }
    addRow(home, { id: 'with_file', address: 'local', estimate: NOTHING }, (journal) =>
      journal.files('local', 'with_file', [file]),
    )
    expect((await runCli('forget with_file', { home })).code).toBe(0)
    expect(existsSync(path)).toBe(true)
  })
})

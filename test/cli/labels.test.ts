import { beforeEach, describe, expect, it } from 'vitest'
import { type CommandLine, LOOPBACK_URL, runCli, SET, scripted, wordsOf } from '../support/cli.js'
import { addRow, finishedState, rowsOf } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

let home = ''

/** A finished and an unfinished run of each set of labels. */
beforeEach(() => {
  home = temporaryFolder()
  for (const [name, labels] of Object.entries({
    plain: [],
    spring: ['spring'],
    both: ['spring', 'Frühling'],
  })) {
    addRow(home, { id: `${name}_done`, labels }, (journal) =>
      journal.status(LOOPBACK_URL, {
        state: finishedState(`${name}_done`, ['https://cdn.example/1.png']),
      }),
    )
    addRow(home, { id: `${name}_going`, labels })
  }
})

const run = (line: CommandLine) => runCli(line, { home })
const idsIn = (text: string) => [...text.matchAll(/^(\w+)\t/gm)].map(([, id]) => id)

describe('--label', () => {
  it('selects the runs that have all labels, in any form of Unicode', async () => {
    expect(idsIn((await run('list --label spring')).stdout)).toEqual([
      ...['both_going', 'both_done', 'spring_going', 'spring_done'],
    ])
    const words = ['--label', 'spring', '--label', ' Fru\u0308hling ', '--status', 'succeeded']
    expect(idsIn((await run(['list', ...words])).stdout)).toEqual(['both_done'])
    expect((await run('list --label SPRING')).stdout).toBe('')
  })

  it.each([['list'], ['wait', '--all'], ['gallery'], ['forget'], ['spend']])(
    'of %j must not be empty',
    async (...words) => {
      const { code, stderr } = await run([...words, '--label', ''])
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: 'error: --label: a label must not be empty.\n  Example: --label "spring campaign".\n',
      })
    },
  )

  it('narrows `wait --all`, and resumes by the same command', async () => {
    const { fetch, requests } = scripted({ status: 200, body: { status: 'processing' } })
    const wait = (flags: CommandLine) => runCli(['wait', ...wordsOf(flags)], { home, fetch, env: SET })
    const { code, stderr } = await wait(['--all', '--label', 'Frühling', '--timeout', '5s'])
    expect(code).toBe(11)
    expect(stderr).toContain('both_going is still running after 5 s.')
    expect(new Set(requests.map(({ url }) => url.pathname))).toEqual(new Set(['/api/v1/runs/both_going']))
    expect((await wait('--all --label a --label b')).stderr).toBe(
      'No unfinished runs with the label a and b at http://127.0.0.1:1.\n',
    )
    for (const words of [['--last'], ['both_going'], []])
      expect(await wait([...words, '--label', 'spring'])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--label selects unfinished runs together with --all.'),
      })
  })

  it('selects what `forget` removes, and narrows its other flags', async () => {
    const names = () => rowsOf(home).map(({ id }) => id)
    expect((await run('forget --label spring --finished --yes')).code).toBe(0)
    expect(names()).toEqual(['both_going', 'spring_going', 'plain_going', 'plain_done'])
    const asked = await run(['forget', '--label', 'Frühling'])
    expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('both_going is not finished') })
    expect((await run(['forget', '--label', 'Frühling', '--before', '9d'])).stderr).toContain(
      'Removed 0 runs',
    )
    await run(['forget', '--label', 'Frühling', '--yes'])
    expect(names()).toEqual(['spring_going', 'plain_going', 'plain_done'])
    expect((await run('forget plain_done --label spring')).code).toBe(2)
  })
})

it('shows the labels and the estimate of a run', async () => {
  addRow(home, { id: 'priced', labels: ['b', 'a'], estimate: { millionths: 400_000, currency: 'USD' } })
  expect((await run('show priced')).stdout).toContain('label\tb\nlabel\ta\n')
  expect((await run('show priced')).stdout).toContain('\nestimate\t0.4 USD\n')
  expect((await run('show plain_done')).stdout).not.toMatch(/label|estimate/)
})

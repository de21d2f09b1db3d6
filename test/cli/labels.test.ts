import { beforeEach, expect, it } from 'vitest'
import { addRow, createHome, type Home, lines, outputOf, usageErrorOf } from '../support/index.js'

/** A finished and an unfinished run of each set of labels. */
const JOURNAL = Object.entries({ plain: [], spring: ['spring'], both: ['spring', 'Frühling'] }).flatMap(
  ([name, labels]) => [
    { id: `${name}_done`, labels, urls: ['https://cdn.example/1.png'] },
    { id: `${name}_going`, labels },
  ],
)
let home: Home
const run: Home['run'] = (...line) => home.run(...line)
beforeEach(() => {
  home = createHome({ journal: JOURNAL, answers: [{ status: 200, body: { status: 'processing' } }] })
})

const idsIn = (text: string) => lines(text).map((line) => line.split('\t')[0])

it('list --label selects the runs that have all labels, in any form of Unicode', async () => {
  expect(idsIn(outputOf(await run('list --label spring')))).toEqual([
    ...['both_going', 'both_done', 'spring_going', 'spring_done'],
  ])
  const both = await run('list --label spring --label " Fru\u0308hling " --status succeeded')
  expect(idsIn(both.stdout)).toEqual(['both_done'])
  expect(outputOf(await run('list --label SPRING'))).toBe('')
})

it.each(['list', 'wait --all', 'gallery', 'forget', 'spend'])(
  '%s --label does not take an empty label',
  async (line) => {
    expect(usageErrorOf(await run(`${line} --label " "`))).toBe(
      'error: --label: a label must not be empty.\n  Example: --label "spring campaign".\n',
    )
  },
)

it('wait --all --label waits for the runs with the label, and --label needs --all', async () => {
  const { code, stderr } = await run('wait --all --label Frühling --timeout 5s')
  expect(code).toBe(11)
  expect(stderr).toContain('both_going is still running after 5 s.')
  expect(new Set(home.requests.map(({ url }) => url.pathname))).toEqual(new Set(['/api/v1/runs/both_going']))
  expect((await run('wait --all --label a --label b')).stderr).toBe(
    'No unfinished runs with the label a and b at http://127.0.0.1:1.\n',
  )
  for (const words of ['--last', 'both_going', ''])
    expect(usageErrorOf(await run(`wait ${words} --label spring`))).toContain(
      '--label selects unfinished runs together with --all.',
    )
})

it('forget --label removes the runs with the label, together with other flags fewer of them', async () => {
  const names = () => home.rows().map(({ id }) => id)
  outputOf(await run('forget --label spring --finished --yes'))
  expect(names()).toEqual(['both_going', 'spring_going', 'plain_going', 'plain_done'])
  expect(usageErrorOf(await run('forget --label Frühling'))).toContain(
    'Unfinished or unconfirmed: both_going.',
  )
  expect((await run('forget --label Frühling --before 9d')).stderr).toContain('Removed 0 runs')
  await run('forget --label Frühling --yes')
  expect(names()).toEqual(['spring_going', 'plain_going', 'plain_done'])
  usageErrorOf(await run('forget plain_done --label spring'))
})

it('show shows the labels and the estimate of a run', async () => {
  addRow(home.home, { id: 'priced', labels: ['b', 'a'], estimate: { millionths: 400_000, currency: 'USD' } })
  expect(outputOf(await run('show priced'))).toContain('label\tb\nlabel\ta\n')
  expect(outputOf(await run('show priced'))).toContain('\nestimate\t0.4 USD\n')
  expect(outputOf(await run('show plain_done'))).not.toMatch(/label|estimate/)
})

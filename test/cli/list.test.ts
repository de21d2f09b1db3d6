import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { formatAgo } from '../../src/cli/terminal/format.js'
import { columnsOf, cutToColumns } from '../../src/cli/terminal/text-width.js'
import {
  addRow,
  createCliService,
  createHome,
  createLocalHome,
  lines,
  outputOf,
  runCli,
  usageErrorOf,
} from '../support/index.js'

const RUN = 'run image "a fox" --no-wait'

it('list prints the newest first, tab-separated in a pipe', async () => {
  const service = await createCliService()
  await service.run(RUN)
  await service.clock.advance(60_000)
  await service.run(['run', 'video', 'two\nlines\tand a \u001b[31mcolour', '--no-wait'])
  const { code, stdout, stderr } = await service.run('list')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [video, image] = lines(stdout).map((line) => line.split('\t'))
  expect(video?.slice(1)).toEqual([
    'queued',
    'video',
    'rushes/preview-video',
    expect.stringMatching(/^2026-01-01T00:01:.*Z$/),
    'two lines and a [31mcolour',
    'http://127.0.0.1:1',
  ])
  expect(image?.slice(0, 4)).toEqual([service.rows()[1]?.id, 'queued', 'image', 'rushes/preview-image'])
})

it('list prints unconfirmed runs by their key', async () => {
  const { run } = createHome({ answers: [{ status: 500 }] })
  await run('run image "a fox"')
  expect(outputOf(await run('list'))).toMatch(
    /^~[0-9a-f]{4}\tunconfirmed\timage\tacme\/still-1\t\S+\ta fox\thttp:\/\/127\.0\.0\.1:1\n$/,
  )
  const object = JSON.parse(outputOf(await run('list --json --status unconfirmed')))
  expect(object).toMatchObject({
    id: null,
    key: expect.stringMatching(/^~/),
    service: null,
    answer: { status: 500 },
  })
  expect(outputOf(await run('list --status UNCONFIRMED'))).toMatch(/^~/)
})

it('list prints a table that fits a terminal', async () => {
  const service = await createCliService()
  await service.run(['run', 'image', '狐'.repeat(80), '--no-wait'])
  const { stdout } = await service.run('list', { tty: { stdout: true, stderr: true } })
  const [header, row, ...more] = lines(stdout)
  expect(more).toEqual([])
  expect(header).toMatch(/^RUN +STATUS +MODEL +AGE +PROMPT$/)
  expect(row).toMatch(/^run_\w{3} {2}queued {2}rushes\/preview-image {2}(now|\d s) +狐+…$/)
  expect(columnsOf(row ?? '')).toBeLessThanOrEqual(80)
})

it('list shows a file by its name while it is there, without the id that the row has', async () => {
  const { run, file } = createLocalHome()
  for (const name of ['fox.png', 'gone.png', '{id}.png'])
    await run(['run', 'image', '--local', 'a fox', '-o', file(name)])
  rmSync(file('gone.png'))
  const { stdout } = await run('list', { tty: { stdout: true }, columns: 100 })
  const [header = '', ...rows] = lines(stdout)
  expect(rows.map((line) => line.slice(header.indexOf('FILE')).split(' ')[0])).toEqual([
    '….png',
    '',
    'fox.png',
  ])
})

it('list has a column for where runs are if there are several places', async () => {
  const service = await createCliService()
  await service.run(RUN)
  addRow(service.home, { address: 'local', id: 'run_local' })
  const { stdout } = await service.run('list', { tty: { stdout: true }, columns: 90 })
  const [header = '', ...rows] = lines(stdout)
  expect(header).toMatch(/^RUN +STATUS +KIND +MODEL +AGE +WHERE +PROMPT$/)
  const narrow = await service.run('list', { tty: { stdout: true }, columns: 60 })
  expect(narrow.stdout).toMatch(/^RUN +STATUS +KIND +AGE +WHERE +PROMPT\n/)
  expect(rows.map((row) => /(local|127\.0\.0\.1:1) {2}/.exec(row)?.[1])).toEqual(['127.0.0.1:1', 'local'])
  expect(outputOf(await service.run('list --local'))).toMatch(/^run_local\t.*\tlocal\n$/)
})

it('list shows ids as short as they are unique in the journal', async () => {
  const { run } = createHome({
    journal: [{ id: 'run_abcdef1', kind: 'video' }, { id: 'run_abcdefghij' }, { id: 'run_xyz' }],
  })
  const { stdout } = await run('list --kind image', { tty: { stdout: true } })
  const ids = stdout.split('\n').map((line) => line.split(' ')[0])
  expect(ids).toEqual(['RUN', 'run_xyz', 'run_abcdefg', ''])
  expect(outputOf(await run('show run_abcdefg'))).toMatch(/^run\trun_abcdefghij\n/)
})

it('list --here shows the runs that were created in this folder, or that have a manifest or a file in it', async () => {
  const folder = process.cwd()
  const { run } = createHome({
    journal: [
      { id: 'created', folder },
      { id: 'below', folder: join(folder, 'docs') },
      { id: 'beside', folder: `${folder}-other` },
      { id: 'batch', manifest: join(folder, 'shots.yaml') },
      { id: 'downloaded', files: [{ path: join(folder, 'no.png') }] },
      { id: 'elsewhere', folder: '/elsewhere', manifest: '/elsewhere/shots.yaml' },
    ],
  })
  const { stdout } = await run('list --here')
  const ids = lines(stdout).map((line) => line.split('\t')[0])
  expect(ids.sort()).toEqual(['batch', 'below', 'created', 'downloaded'])
})

it('list shows the runs that its filters select', async () => {
  const service = await createCliService({ rendering: false })
  await service.run(RUN)
  await service.clock.advance(3_600_000)
  await service.run('run video "a boat" --no-wait')
  await service.clock.advance(3_600_000)
  await service.run(RUN)
  const filters: readonly (readonly [words: string, count: number])[] = [
    ['', 3],
    ['--limit 2', 2],
    ['--limit 0', 3],
    ['--kind video', 1],
    ['--kind image', 2],
    ['--status queued', 3],
    ['--status succeeded', 0],
    ['--since 90m', 2],
    ['--since 2d --kind image --status queued', 2],
    ['--base-url http://127.0.0.1:2', 0],
  ]
  for (const [words, count] of filters) {
    const { code, stdout } = await service.run(`list ${words}`)
    expect([words, code, lines(stdout).length]).toEqual([words, 0, count])
  }
})

it('list --status takes the statuses of any service, and names the nearest one of a mistake', async () => {
  const { run } = createHome({ answers: [{ status: 201, body: { id: 'run_1', status: 'Painting' } }] })
  await run('run image "a fox" --no-wait')
  const list = (status: string) => run(`list --status ${status}`)
  for (const status of ['painting', 'Painting']) expect(outputOf(await list(status))).toMatch(/^run_1\t/)
  for (const status of ['processing', 'In_Queue', 'cancelled']) expect(outputOf(await list(status))).toBe('')
  expect(usageErrorOf(await list('suceeded'))).toBe(
    'error: Unknown status "suceeded". Did you mean "succeeded"?\n' +
      '  Use queued, processing, succeeded, failed, canceled or unconfirmed, or the status of a run in the journal.\n',
  )
})

it.each(['--limit x', '--limit -1', '--since yesterday', '--kind x'])(
  'list %s is a usage error',
  async (words) => {
    usageErrorOf(await runCli(`list ${words}`))
  },
)

it.each([
  [500, 'now'],
  [1_000, '1 s ago'],
  [185_000, '3 min ago'],
  [7_200_000, '2 h ago'],
  [200_000_000, '2 d ago'],
])('list shows an age of %i ms as %s', (ms, text) => {
  expect(formatAgo(ms)).toBe(text)
})

it.each([
  ['fox', 3, 'fox'],
  ['foxes', 4, 'fox…'],
  ['狐狸', 4, '狐狸'],
  ['狐狸', 3, '狐…'],
  ['👩‍👩‍👧 family', 5, '👩‍👩‍👧 f…'],
])('list cuts %s to %i columns as %s', (text, columns, cut) => {
  expect(cutToColumns(text, columns)).toBe(cut)
})

/** How commands name runs: by id, by its beginning, by the key of a row, or by a file. */
import { mkdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import {
  createCliService,
  createHome,
  outputOf,
  scripted,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

/** A service that knows every run, and the ids that it was asked for. */
function createEchoService() {
  const idIn = ({ url }: { readonly url: URL }) =>
    decodeURIComponent(url.pathname.replace(/\/cancel$/, '').replace(/^.*\//, ''))
  const { fetch, requests } = scripted((request) => ({
    status: 200,
    body: { id: idIn(request), status: 'canceled' },
  }))
  return { fetch, asked: () => requests.map(idIn) }
}

/** A home whose journal has these ids. */
const withIds = (...ids: readonly string[]) => createHome({ journal: ids.map((id) => ({ id })) })
const IDS = ['run_abc1', 'run_abc2', 'run_xyz', 'run_x']

it('the beginning of an id names the run for each command if only one run begins so', async () => {
  const { run } = withIds(...IDS)
  for (const command of ['status', 'cancel', 'wait', 'download', 'open', 'show', 'forget --yes']) {
    const { fetch, asked } = createEchoService()
    const ran = await run(`${command} run_xy`, { fetch })
    expect(`${ran.stdout}${ran.stderr}`).toContain('run_xyz')
    expect(new Set(asked())).toEqual(new Set(/open|show|forget/.test(command) ? [] : ['run_xyz']))
  }
})

it('the beginning of several ids is a usage error that names them', async () => {
  for (const command of ['status', 'show'])
    expect(usageErrorOf(await withIds(...IDS).run(`${command} run_abc`))).toBe(
      'error: 2 runs of the journal begin with run_abc: run_abc2, run_abc1.\n' +
        '  Give more characters of the id.\n',
    )
})

it('a whole id goes before the beginning of another one', async () => {
  expect(outputOf(await withIds(...IDS).run('show run_x'))).toMatch(/^run\trun_x\n/)
})

it('the beginning of an id that ends in a number names no run, because it may be the id of another one', async () => {
  for (const ids of [['12345'], ['12345', '12346'], ['2026-11-12345']]) {
    const { run } = withIds(...ids)
    const { fetch, asked } = createEchoService()
    const other = ids[0]?.slice(0, -1) ?? ''
    outputOf(await run(`cancel ${other}`, { fetch }))
    expect(asked()).toEqual([other])
    expect(usageErrorOf(await run(`forget ${other} --yes`))).toContain('is not in the journal')
  }
})

it('the beginning of an id has at least four characters', async () => {
  const { run } = withIds('abcdef')
  expect((await run('show abc')).stderr).toContain('abc is not in the journal')
  expect(outputOf(await run('show abcd'))).toMatch(/^run\tabcdef\n/)
})

it('an id that the journal does not know is named where no service is set that could know it', async () => {
  const { run } = createHome({ env: {}, journal: [{ id: 'run_abc' }] })
  for (const command of ['status', 'wait', 'cancel'])
    expect(usageErrorOf(await run(`${command} run_abd`))).toMatch(
      /^error: run_abd is not in the journal, and no service can be asked\. Not set: service URL, API key\.\n.*--base-url/,
    )
})

it('ids on standard input may be beginnings, and the service gets the request for an id that the journal does not know', async () => {
  const { fetch, asked } = createEchoService()
  const stdin = 'run_xy\nrun_new\nrun_xyz\n'
  const { stdout } = await withIds(...IDS).run('status -', { fetch, stdin })
  expect(stdout).toBe('run_xyz\tcanceled\t\nrun_new\tcanceled\t\n')
  expect(asked()).toEqual(['run_xyz', 'run_new'])
})

it('status shows the files of a run on a terminal and as JSON, and its URLs when they are gone', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run(`run image "a fox" -o ${path}`)
  const line = 'status --last'
  expect(outputOf(await service.run(line, { tty: { stdout: true } }))).toMatch(
    /^run_\w+ {2}succeeded {2}\/.*fox\.png\n$/,
  )
  expect(outputOf(await service.run(line))).toMatch(/^run_\w+\tsucceeded\thttp:\/\/\S+\n$/)
  expect(JSON.parse(outputOf(await service.run(`${line} --json`)))).toMatchObject({ files: [{ path }] })
  rmSync(path)
  expect(outputOf(await service.run(line, { tty: { stdout: true } }))).toMatch(/succeeded {2}http/)
})

it('a path names the run that wrote its file last, also after the file was deleted', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const path = join(folder, 'fox.png')
  await service.run(`run image "a hen" -o ${path}`)
  await service.run(`run image "a fox" -o ${path} --overwrite`)
  const [id, first] = service.rows().map((row) => row.id)
  const shown = await service.run(`show ${relative('.', path)}`)
  expect(shown.stdout).toMatch(new RegExp(`^run\t${id}\n`))
  rmSync(path)
  mkdirSync(path)
  expect(outputOf(await service.run(`status ${path}`))).toMatch(new RegExp(`^${id}\tsucceeded\t`))
  rmSync(path, { recursive: true })
  await service.clock.advance(1_000)
  await service.run(`download ${first} -o ${path}`)
  expect(outputOf(await service.run(`show ${path}`))).toMatch(new RegExp(`^run\t${first}\n`))
})

it('a path does not name a run of the current service that has the id of its run elsewhere', async () => {
  const path = join(temporaryFolder(), 'fox.png')
  const far = 'https://far.example.com'
  const { run } = createHome({ journal: [{ id: '7', address: far, files: [{ path }] }, { id: '7' }] })
  const { fetch, asked } = createEchoService()
  for (const command of ['cancel', 'download'])
    expect(usageErrorOf(await run(`${command} ${path}`, { fetch }))).toContain(`7 was created at ${far}`)
  expect(asked()).toEqual([])
})

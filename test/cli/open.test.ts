/** `rushes open`: which files it opens, and what it says of a run without one. */
import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { openFile } from '../../src/cli/commands/open.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createFamilyEngine,
  createHome,
  createManualClock,
  lines,
  objects,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

it('open opens every file of the run, and prints its path', async () => {
  const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
  const folder = temporaryFolder()
  for (const name of ['fox', 'hen']) await service.run(`run image ${name} -o ${folder}/${name}-{index}.png`)
  const [hen, fox] = service.rows().map(({ id }) => id)
  const paths = (name: string) => [1, 2].map((index) => join(folder, `${name}-${index}.png`))
  const opened = await service.run(`open ${fox}`)
  expect(opened).toMatchObject({ code: 0, stderr: '', opened: paths('fox') })
  expect(lines(opened.stdout)).toEqual(paths('fox'))
  expect(await service.run('open --last')).toMatchObject({ code: 0, opened: paths('hen') })
  const json = await service.run('open --last --json')
  expect(objects(json.stdout)[0]).toEqual({ id: hen, opened: paths('hen')[0] })
})

it('open leaves out files that are gone, and opens the URLs of a run without a file', async () => {
  const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
  const folder = temporaryFolder()
  await service.run(`run image fox -o ${folder}/{index}.png`)
  const [{ id, urls } = {}] = service.rows()
  rmSync(join(folder, '1.png'))
  expect(await service.run('open --last')).toMatchObject({
    ...{ code: 0, opened: [join(folder, '2.png')] },
    stderr: `warning: ${id}: 1 file moved, changed or deleted.\n`,
  })
  rmSync(join(folder, '2.png'))
  expect(await service.run('open --last')).toMatchObject({
    ...{ code: 0, opened: urls },
    stderr: `warning: ${id}: 2 files moved, changed or deleted.\n`,
  })
})

it('open says what to do with a run that has no output', async () => {
  const state = { status: 'failed', phase: 'failed' } as const
  const { run, rows } = createHome({ journal: [{ id: 'failed_1', state }, { id: 'going_1' }, {}] })
  const [{ key = '' } = {}] = rows()
  const open = (words = '') => run(`open ${words}`)
  expect(await open('going_1')).toMatchObject({
    code: 11,
    stderr: expect.stringContaining('Download it with `rushes wait -d going_1`.'),
  })
  expect(await open('failed_1')).toMatchObject({
    code: 10,
    stderr: expect.stringContaining('See it with `rushes show failed_1`.'),
  })
  expect(await open('--last')).toMatchObject({
    code: 13,
    stderr: expect.stringContaining(`rushes show '${key}'`),
  })
  usageErrorOf(await open('nosuch'))
  usageErrorOf(await open('going_1 --last'))
  expect(usageErrorOf(await open())).toContain('Missing run ids.')
})

it('open opens no file that the system may run, and nothing after an interrupt', async () => {
  const folder = temporaryFolder()
  const paths = ['a.png', 'b.desktop', 'c.EXE', 'd', 'e.webp'].map((name) => join(folder, name))
  for (const path of paths) writeFileSync(path, path)
  const files = paths.map((path) => ({
    ...{ path, bytes: Buffer.byteLength(path), sha256: path, content_type: 'application/octet-stream' },
  }))
  const { run } = createHome({
    journal: [
      { id: 'run_1', urls: ['javascript:alert(1)'], files: files.slice(0, 2) },
      { id: 'run_2', files: files.slice(2, 3) },
      { id: 'run_3', files: files.slice(3) },
    ],
  })
  for (const [id, kind, files] of [
    ['run_1', '.desktop', paths.slice(0, 1)],
    ['run_2', '.EXE', []],
  ] as const) {
    const { code, opened, stderr } = await run(`open ${id}`)
    expect({ code, opened }).toEqual({ code: 2, opened: files })
    expect(stderr).toContain(`: the system may run a ${kind} file as a program.`)
  }
  for (const path of paths.slice(0, 2)) rmSync(path)
  expect((await run('open run_1')).opened).toEqual([])

  const interrupts = createInterrupts()
  const openResult = async () => interrupts.interrupt('SIGINT')
  const stopped = await run('open run_3', { openResult, interrupts })
  expect(stopped).toMatchObject({ code: 130, opened: [paths[3]] })
})

it('open is a usage error if the opener fails', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run(`run image "a fox" -o ${path}`)
  const openResult = async () => {
    throw new Error('xdg-open is not installed')
  }
  expect(usageErrorOf(await service.run('open --last', { openResult }))).toBe(
    `error: Could not open ${path}: xdg-open is not installed.\n  Without a desktop, no program can show it.\n`,
  )
})
it.runIf(process.platform === 'linux').each([
  ['is not installed', undefined, 'xdg-open is not installed'],
  ['fails', 4, 'xdg-open failed with exit code 4'],
])('open says that the opener %s', async (_, exit, message) => {
  const folder = temporaryFolder()
  if (exit !== undefined)
    writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\nexit ${exit}\n`, { mode: 0o755 })
  vi.stubEnv('PATH', folder)
  // Outside of the bundle, the package starts a copy of its own.
  vi.doMock('open', () => ({ default: async (target: string) => spawn('xdg-open', [target]) }))
  onTestFinished(() => void vi.doUnmock('open'))
  const options = { clock: createManualClock(), signal: new AbortController().signal }
  await expect(openFile(join(folder, 'fox.png'), options)).rejects.toThrow(message)
})

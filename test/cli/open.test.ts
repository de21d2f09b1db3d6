/** `rushes open`: which files it opens, and what it says of a run without one. */
import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openFile } from '../../src/cli/commands/open.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { createCliService, runCli } from '../support/cli.js'
import { createManualClock } from '../support/clock.js'
import { createFamilyEngine } from '../support/engines.js'
import { addRow, finishedState, rowsOf, withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ADDRESS = 'http://127.0.0.1:1'

describe('open', () => {
  it('opens every file of the run, and prints its path', async () => {
    const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
    const folder = temporaryFolder()
    for (const name of ['fox', 'hen'])
      await service.run(['run', 'image', `a ${name}`, '-o', join(folder, `${name}-{index}.png`)])
    const [hen, fox] = rowsOf(service.home).map(({ id = '' }) => id)
    const paths = (name: string) => [1, 2].map((index) => join(folder, `${name}-${index}.png`))
    const opened = await service.run(['open', fox ?? ''])
    expect(opened).toMatchObject({ code: 0, stderr: '', opened: paths('fox') })
    expect(opened.stdout).toBe([...paths('fox'), ''].join('\n'))
    expect(await service.run('open --last')).toMatchObject({ code: 0, opened: paths('hen') })
    const json = await service.run('open --last --json')
    expect(json.stdout.split('\n')[0]).toBe(JSON.stringify({ id: hen, opened: paths('hen')[0] }))

    rmSync(paths('hen')[0] ?? '')
    expect(await service.run('open --last')).toMatchObject({
      code: 0,
      opened: paths('hen').slice(1),
      stderr: `warning: ${hen}: 1 file moved, changed or deleted.\n`,
    })
    rmSync(paths('hen')[1] ?? '')
    expect(await service.run(['open', hen ?? ''])).toMatchObject({
      code: 0,
      opened: rowsOf(service.home)[0]?.urls,
      stderr: `warning: ${hen}: 2 files moved, changed or deleted.\n`,
    })
  })

  it('opens the copy of the local service if a local run was not downloaded', async () => {
    const home = temporaryFolder()
    const options = { home, engine: createFamilyEngine() }
    await runCli(['run', 'image', 'a fox', '--local', '-o', join(home, 'fox.png')], options)
    rmSync(join(home, 'fox.png'))
    const { code, opened } = await runCli('open --last --local', { home })
    expect(code).toBe(0)
    expect(opened).toEqual([expect.stringContaining(join(home, 'state'))])
  })

  it('says what to do with a run that has no output', async () => {
    const home = temporaryFolder()
    const failed = { ...finishedState('failed_1', []), status: 'failed', phase: 'failed' } as const
    addRow(home, { id: 'failed_1' }, (journal) => journal.status(ADDRESS, { state: failed }))
    addRow(home, { id: 'going_1' })
    withJournal(home, (journal) => {
      const intent = { address: ADDRESS, profile: 'default', kind: 'image', model: 'acme/still-1', input: {} }
      journal.markUnconfirmed(journal.intend('required', intent), {
        code: 'submission_unknown',
        message: 'lost',
      })
    })
    const [{ key = '' } = {}] = rowsOf(home)
    const env = { RUSHES_BASE_URL: ADDRESS }
    const open = (words = '') => runCli(`open ${words}`, { home, env })
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
      stderr: expect.stringContaining(`rushes show ${key}`),
    })
    expect((await open('nosuch')).code).toBe(2)
    expect((await open()).stderr).toContain('Missing run ids.')
    expect((await open('going_1 --last')).code).toBe(2)
  })

  it('opens no file that the system may run, and nothing after an interrupt', async () => {
    const home = temporaryFolder()
    const paths = ['a.png', 'b.desktop', 'c.EXE', 'd', 'e.webp'].map((name) => join(home, name))
    for (const path of paths) writeFileSync(path, path)
    const files = paths.map((path) => ({
      ...{ path, bytes: Buffer.byteLength(path), sha256: path, url: 'https://cdn.example/1' },
      content_type: 'application/octet-stream',
    }))
    addRow(home, { id: 'run_1' }, (journal) => {
      journal.status(ADDRESS, { state: finishedState('run_1', ['javascript:alert(1)']) })
      journal.files(ADDRESS, 'run_1', files.slice(0, 2))
    })
    addRow(home, { id: 'run_2' }, (journal) => journal.files(ADDRESS, 'run_2', files.slice(2, 3)))
    addRow(home, { id: 'run_3' }, (journal) => journal.files(ADDRESS, 'run_3', files.slice(3)))
    for (const [id, kind, files] of [
      ['run_1', '.desktop', paths.slice(0, 1)],
      ['run_2', '.EXE', []],
    ] as const) {
      const { code, opened, stderr } = await runCli(`open ${id}`, { home })
      expect({ code, opened }).toEqual({ code: 2, opened: files })
      expect(stderr).toContain(`: the system may run a ${kind} file as a program.`)
    }
    for (const path of paths.slice(0, 2)) rmSync(path)
    expect((await runCli('open run_1', { home })).opened).toEqual([])

    const interrupts = createInterrupts()
    const openResult = async () => interrupts.interrupt('SIGINT')
    const stopped = await runCli('open run_3', { home, openResult, interrupts })
    expect(stopped).toMatchObject({ code: 130, opened: [paths[3]] })
  })

  it('fails if the opener fails', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    await service.run(`run image "a fox" -o ${path}`)
    const openResult = async () => {
      throw new Error('xdg-open is not installed')
    }
    const { code, stdout, stderr } = await service.run('open --last', { openResult })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(`error: Could not open ${path}: xdg-open is not installed.\n`)
  })
  it.runIf(process.platform === 'linux').each([
    ['is not installed', undefined, 'xdg-open is not installed'],
    ['fails', 4, 'xdg-open failed with exit code 4'],
  ])('says that the opener %s', async (_, exit, message) => {
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
})

/** `rushes open`: which files it opens, and what it says of a run without one. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService, runCli } from '../support/cli.js'
import { createFamilyEngine } from '../support/engines.js'
import { addRow, finishedState, rowsOf, withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/service.js'

const ADDRESS = 'http://127.0.0.1:1'

describe('open', () => {
  it('opens every file of the runs, and prints its path', async () => {
    const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
    const folder = temporaryFolder()
    for (const name of ['fox', 'hen'])
      await service.run(['run', 'image', `a ${name}`, '-o', join(folder, `${name}-{index}.png`)])
    const [hen, fox] = rowsOf(service.home).map(({ id = '' }) => id)
    const paths = (name: string) => [1, 2].map((index) => join(folder, `${name}-${index}.png`))
    const both = await service.run(['open', fox ?? '', hen ?? ''])
    expect(both).toMatchObject({ code: 0, stderr: '', opened: [...paths('fox'), ...paths('hen')] })
    expect(both.stdout).toBe([...paths('fox'), ...paths('hen'), ''].join('\n'))
    expect(await service.run(['open', '--last'])).toMatchObject({ code: 0, opened: paths('hen') })
    expect((await service.run(['open', '-'], { stdin: `${hen}\n` })).opened).toEqual(paths('hen'))
    const json = await service.run(['open', '--last', '--json'])
    expect(json.stdout.split('\n')[0]).toBe(JSON.stringify({ id: hen, opened: paths('hen')[0] }))

    rmSync(paths('hen')[0] ?? '')
    expect(await service.run(['open', '--last'])).toMatchObject({
      code: 0,
      opened: paths('hen').slice(1),
      stderr: `warning: ${hen}: 1 other file moved, changed or deleted.\n`,
    })
    rmSync(paths('hen')[1] ?? '')
    expect(await service.run(['open', hen ?? '', fox ?? ''])).toMatchObject({
      code: 2,
      opened: paths('fox'),
      stderr:
        `error: ${hen} has no file on this machine. Its last status is succeeded.\n` +
        `  Download and open it with \`rushes download ${hen} --open\`.\n`,
    })
    const again = await service.run(['download', hen ?? '', '--open', '-o', `${folder}/`])
    expect([again.code, again.opened.length]).toEqual([0, 2])
  })

  it('opens the copy of the local service if a local run was not downloaded', async () => {
    const home = temporaryFolder()
    const options = { home, engine: createFamilyEngine() }
    await runCli(['run', 'image', 'a fox', '--local', '-o', join(home, 'fox.png')], options)
    rmSync(join(home, 'fox.png'))
    const { code, opened } = await runCli(['open', '--last', '--local'], { home })
    expect(code).toBe(0)
    expect(opened).toEqual([expect.stringContaining(join(home, 'state'))])
  })

  it('says what to do with a run that has no output', async () => {
    const home = temporaryFolder()
    const failed = { ...finishedState('failed_1', []), status: 'failed', phase: 'failed' } as const
    addRow(home, { id: 'failed_1' }, (journal) => journal.recordStatus(ADDRESS, { state: failed }))
    addRow(home, { id: 'going_1' })
    withJournal(home, (journal) => {
      const intent = { address: ADDRESS, profile: 'default', kind: 'image', model: 'acme/still-1', input: {} }
      journal.markUnconfirmed(journal.intend(intent), { code: 'submission_unknown', message: 'lost' })
    })
    const [{ key = '' } = {}] = rowsOf(home)
    const env = { RUSHES_BASE_URL: ADDRESS }
    const open = (...words: string[]) => runCli(['open', ...words], { home, env })
    expect(await open('going_1')).toMatchObject({
      code: 11,
      stderr:
        'error: going_1 has no file on this machine. Its last status is accepted.\n' +
        '  Download and open it with `rushes wait -d going_1 --open`.\n',
    })
    expect(await open('failed_1')).toMatchObject({
      code: 10,
      stderr:
        'error: failed_1 has no file on this machine. Its last status is failed.\n  See it with `rushes show failed_1`.\n',
    })
    expect(await open('--last')).toMatchObject({
      code: 13,
      stderr: expect.stringContaining(`rushes show ${key}`),
    })
    expect((await open('failed_1', 'going_1', 'nosuch')).code).toBe(10)
    expect((await open()).stderr).toContain('Missing run ids.')
    expect((await open('going_1', '--last')).code).toBe(2)
  })

  it('fails if the opener fails', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    await service.run(['run', 'image', 'a fox', '-o', path])
    const openResult = async () => {
      throw new Error('xdg-open is not installed')
    }
    const { code, stdout, stderr } = await service.run(['open', '--last'], { openResult })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(`error: Could not open ${path}: xdg-open is not installed.\n`)
  })
})

/** `rushes batch` with runs of several outputs: their names, what is planned for each, and what is replaced. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createFamily, lines, objects, RUN, SHEET, sha256 } from '../support/family.js'

const pictures = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.png'))
    .sort()

describe('the names of further outputs', () => {
  it('are numbered, and their paths are printed', async () => {
    const { run, folder, lock } = await createFamily([SHEET], { outputs: 3 })
    const { stdout } = await run()
    expect(pictures(folder)).toEqual(['sheet-2.png', 'sheet-3.png', 'sheet.png'])
    expect(lines(stdout).map((path) => path.replace(/.*\//, ''))).toEqual([
      'sheet.png',
      'sheet-2.png',
      'sheet-3.png',
    ])
    expect(lock().sheet.outputs.map(({ file }: { file: string }) => file)).toEqual([
      'sheet-2.png',
      'sheet-3.png',
    ])
  })

  it.each([
    ['of the same row with count', [{ ...SHEET, count: 2 }]],
    ['of another row', [SHEET, { ...RUN, name: 'sheet-2', image_urls: [] }]],
    [
      'of another row, with their extensions',
      [
        { ...SHEET, output: 'sheet.png' },
        { ...RUN, name: 'two', image_urls: [], output: 'sheet-2.png' },
      ],
    ],
  ])('are others where they are those %s', async (_, rows) => {
    const { run, folder, created, path } = await createFamily(rows, { outputs: 2 })
    expect((await run()).code).toBe(0)
    expect(created()).toHaveLength(2)
    expect(pictures(folder)).toEqual(['sheet-1-2.png', 'sheet-2-2.png', 'sheet-2.png', 'sheet.png'])
    const sums = pictures(folder).map((name) => sha256(path(name)))
    expect((await run(['--check'])).code).toBe(0)
    rmSync(path('sheet-1-2.png'))
    expect((await run()).code).toBe(0)
    expect(pictures(folder).map((name) => sha256(path(name)))).toEqual(sums)
    expect(created()).toEqual([])
  })

  it('stay what they are when a new row would claim one, which is an error before anything is paid', async () => {
    const { run, write, created, path } = await createFamily([SHEET], { outputs: 2 })
    await run()
    created()
    const second = sha256(path('sheet-2.png'))
    write([{ ...SHEET, count: 2 }])
    const { code, stderr } = await run()
    expect([code, created()]).toEqual([2, []])
    expect(stderr).toContain('sheet-2.png (sheet-2, line 1): output 2 of "sheet"')
    expect((await run(['--overwrite'])).code).toBe(0)
    expect(created()).toHaveLength(1)
    expect(sha256(path('sheet-1-2.png'))).toBe(second)
    expect((await run(['--check'])).code).toBe(0)
  })
})

describe('a further output', () => {
  it('that is missing is planned and downloaded, and the others are not', async () => {
    const { run, created, path, service } = await createFamily([SHEET], { outputs: 2 })
    await run()
    created()
    const second = sha256(path('sheet-2.png'))
    rmSync(path('sheet-2.png'))
    const check = await run(['--check'])
    expect([check.code, check.stdout]).toEqual([10, 'download\tsheet\tsheet-2.png\tmissing\n'])
    service.requests.length = 0
    expect((await run()).stderr).toMatch(/1 run: 1 downloaded/)
    expect(service.requests.map(({ method, url }) => `${method} ${url.pathname.split('/').at(-1)}`)).toEqual([
      expect.stringMatching(/^GET run_/),
      expect.stringMatching(/^GET 1-image\.png/),
    ])
    expect(sha256(path('sheet-2.png'))).toBe(second)
    expect((await run(['--check'])).code).toBe(0)
  })

  it('that was changed is an error, and is downloaded again with --overwrite', async () => {
    const { run, created, path } = await createFamily([SHEET], { outputs: 2 })
    await run()
    created()
    const second = sha256(path('sheet-2.png'))
    writeFileSync(path('sheet-2.png'), 'my own work')
    const { code, stderr } = await run()
    expect([code, stderr]).toEqual([2, expect.stringContaining('sheet-2.png (sheet, line 1): changed since')])
    expect((await run(['--overwrite'])).code).toBe(0)
    expect([sha256(path('sheet-2.png')), created()]).toEqual([second, []])
  })

  it('is copied with the first one when the output gets another name', async () => {
    const { run, created, path, write, lock, service } = await createFamily([SHEET], { outputs: 2 })
    await run()
    created()
    const sums = ['sheet.png', 'sheet-2.png'].map((name) => sha256(path(name)))
    write([{ ...SHEET, output: 'heroes/one.{ext}' }])
    expect((await run()).code).toBe(0)
    expect(['heroes/one.png', 'heroes/one-2.png'].map((name) => sha256(path(name)))).toEqual(sums)
    expect([lock().sheet.file, lock().sheet.outputs[0].file]).toEqual(['heroes/one.png', 'heroes/one-2.png'])
    expect(service.requests).toEqual([])
    expect((await run(['--check'])).code).toBe(0)
  })

  it('replaces no file of others: the row fails before its first file is replaced, and continues for free', async () => {
    const { run, created, path, write } = await createFamily([{ ...SHEET, output: 'sheet.png' }], {
      outputs: 2,
    })
    writeFileSync(path('sheet-2.png'), 'my own work')
    const { code, stderr } = await run()
    expect([code, stderr]).toEqual([
      12,
      expect.stringMatching(/run_\w+.*sheet-2\.png already exists, and is not of this row/s),
    ])
    expect(existsSync(path('sheet.png'))).toBe(false)
    expect(readFileSync(path('sheet-2.png'), 'utf8')).toBe('my own work')
    expect(created()).toHaveLength(1)
    expect((await run()).code).toBe(12)
    rmSync(path('sheet-2.png'))
    expect([(await run()).code, created()]).toEqual([0, []])
    write([{ ...SHEET, output: 'sheet.png', prompt: 'another sheet' }])
    writeFileSync(path('sheet-2.png'), 'my own work')
    expect((await run()).code).toBe(2)
    expect(created()).toEqual([])
    expect((await run(['--overwrite'])).code).toBe(0)
    expect(created()).toHaveLength(1)
  })

  it('is a folder: the row fails, also with --overwrite', async () => {
    const { run, created, path } = await createFamily([SHEET], { outputs: 2 })
    mkdirSync(path('sheet-2.png'))
    expect((await run(['--overwrite'])).code).toBe(12)
    rmSync(path('sheet-2.png'), { recursive: true })
    created()
    expect([(await run()).code, created()]).toEqual([0, []])
  })

  it('of a run that had more of them is left and named', async () => {
    const options = { outputs: 2 }
    const { run, write, path, engine } = await createFamily([SHEET], options)
    await run()
    engine.outputs = 1
    write([{ ...SHEET, prompt: 'another sheet' }])
    const { code, stderr } = await run()
    expect(code).toBe(0)
    expect(stderr).toContain('warning: sheet-2.png is from an earlier run of sheet, and stays as it is')
    expect(existsSync(path('sheet-2.png'))).toBe(true)
    expect((await run(['--check'])).code).toBe(0)
  })
})

describe('a batch that is killed between two outputs', () => {
  /** The lock file as it was when the first output had its name and the second had not. */
  async function killed(outputs: readonly number[]) {
    const family = await createFamily([SHEET], { outputs: 2 })
    const texts: string[] = []
    const fetch: Fetch = async (request) => {
      const answer = await family.service.counting(request)
      if (existsSync(family.lockPath)) texts.push(readFileSync(family.lockPath, 'utf8'))
      return answer
    }
    await family.run([], { fetch })
    const { sheet } = family.lock()
    const files = [sheet, ...sheet.outputs]
    const placing = outputs.map((at) => {
      const { sha256: sum, bytes, content_type } = files[at]
      return { run: sheet.run, output: at + 1, sha256: sum, bytes, content_type }
    })
    for (const [at, { file }] of files.entries()) if (!outputs.includes(at)) rmSync(family.path(file))
    const last = JSON.parse(texts.at(-1) ?? '')
    expect(last.runs.sheet.pending.state).toBe('accepted')
    family.editLock((runs) => {
      runs.sheet = { pending: { ...last.runs.sheet.pending, placing } }
    })
    // As in a clone of the repository, or on another machine.
    rmSync(`${family.service.home}/state`, { recursive: true })
    family.created()
    return { ...family, sums: files.map(({ sha256: sum }: { sha256: string }) => sum) }
  }

  it.each([[[0]], [[1]], [[0, 1]]])(
    'after placing %j goes on without --overwrite and pays nothing',
    async (outputs) => {
      const { run, created, path, sums } = await killed(outputs)
      const { code, stderr } = await run()
      expect([code, stderr]).toEqual([0, expect.stringMatching(/1 run: 1 downloaded/)])
      expect(['sheet.png', 'sheet-2.png'].map((name) => sha256(path(name)))).toEqual(sums)
      expect(created()).toEqual([])
      expect((await run(['--check'])).code).toBe(0)
    },
  )

  it('knows its files after the row was changed, too', async () => {
    const { run, created, write, path } = await killed([1])
    write([{ ...SHEET, prompt: 'another sheet' }])
    const { code, stderr } = await run()
    expect([code, created()]).toEqual([0, ['another sheet']])
    expect(stderr).toMatch(/warning: sheet: run_\w+ has not been downloaded, and the row has changed since/)
    expect(existsSync(path('sheet-2.png'))).toBe(true)
  })

  it('of an older version, which noted one file, goes on too', async () => {
    const { run, created, editLock } = await killed([0])
    editLock(({ sheet }) => {
      const { pending } = sheet as { pending: { placing: readonly [{ sha256: string; bytes: number }] } }
      const [{ sha256: sum, bytes }] = pending.placing
      Object.assign(pending, { placing: { sha256: sum, bytes } })
    })
    expect([(await run()).code, created()]).toEqual([0, []])
  })
})

it('a plan as JSON names the file that it is about', async () => {
  const { run, path } = await createFamily([SHEET], { outputs: 2 })
  await run()
  rmSync(path('sheet-2.png'))
  const [row] = objects((await run(['--dry-run', '--json'])).stdout)
  expect(row).toMatchObject({ action: 'download', reason: 'missing', file: 'sheet-2.png' })
})

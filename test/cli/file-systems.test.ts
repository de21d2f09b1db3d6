/** Whole commands on file systems that Linux does not have: without hard links, without letter case, with Windows' names. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ManifestEntry } from '../../src/batch/manifest/index.js'
import { selectorFor } from '../../src/cli/batch/options.js'
import { type FileSystem, fileSystemOf, systemFiles } from '../../src/host/file-system.js'
import { createCliService } from '../support/cli.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { createFamily } from '../support/family.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const WINDOWS = fileSystemOf('win32')

/** exFAT, as Windows, Linux and macOS report it. */
const WITHOUT_LINKS = ['EISDIR', 'EPERM', 'ENOTSUP'].map((code): [string, FileSystem] => [
  code,
  {
    ...systemFiles,
    link: async () => {
      throw Object.assign(new Error(`${code}: link`), { code })
    },
  },
])

const FOX = { name: 'fox', prompt: 'a fox', output: 'fox.png' }
const HEN = { name: 'hen', prompt: 'a hen', output: 'hen.png' }

describe.each(WITHOUT_LINKS)('where a hard link fails with %s', (_, fileSystem) => {
  it('a run downloads its output, and replaces no file', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    const words = ['run', 'image', 'a fox', '-o', path]
    expect(await service.run(words, { fileSystem })).toMatchObject({ code: 0, stdout: `${path}\n` })
    expect(readFileSync(path).equals(ONE_PIXEL_PNG)).toBe(true)
    expect(await service.run(words, { fileSystem })).toMatchObject({ code: 2 })
  })

  it('a batch downloads its outputs, and swaps the files of two rows', async () => {
    const batch = await createFamily([FOX, HEN])
    expect(await batch.run([], { fileSystem })).toMatchObject({ code: 0 })
    const [fox, hen] = ['fox.png', 'hen.png'].map((name) => readFileSync(batch.path(name)))
    batch.created()
    batch.write([
      { ...FOX, output: 'hen.png' },
      { ...HEN, output: 'fox.png' },
    ])
    expect(await batch.run([], { fileSystem })).toMatchObject({ code: 0 })
    expect(batch.created()).toEqual([])
    expect(readFileSync(batch.path('hen.png'))).toEqual(fox)
    expect(readFileSync(batch.path('fox.png'))).toEqual(hen)
    expect(
      readdirSync(batch.folder).filter((name) => name.startsWith('.fox') || name.startsWith('.hen')),
    ).toEqual([])
  })
})

describe('a name that Windows cannot have', () => {
  it.each([
    'q?.png',
    'a*b-{id}.{ext}',
    'a:b.png',
    'aux.png',
    'out./{id}.png',
    'out /',
    'a/con/',
    `${'x'.repeat(260)}.png`,
  ])('ends `run -o %s` with 2 before anything is sent', async (output) => {
    const service = await createCliService()
    const { code, stderr } = await service.run(
      ['run', 'image', 'a fox', '-o', join(temporaryFolder(), output)],
      {
        fileSystem: WINDOWS,
      },
    )
    expect(code).toBe(2)
    expect(stderr).toMatch(
      /^error: Cannot write .*(Windows|too long).*Nothing was sent\.\n {2}Choose another path/,
    )
    expect(service.requests).toEqual([])
  })

  it('ends a batch with 2 before anything is sent, and names the row and its line', async () => {
    const batch = await createFamily([FOX, { ...HEN, output: 'birds/a:b.png' }])
    const { code, stderr } = await batch.run([], { fileSystem: WINDOWS })
    expect(code).toBe(2)
    expect(stderr).toContain(
      'Cannot write birds/a:b.png (hen, line 1): file names on Windows cannot contain ":". Nothing was sent.',
    )
    expect([batch.created(), batch.pictures()]).toEqual([[], []])
  })

  it('works like any other name elsewhere', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'a:b?.png')
    expect(await service.run(['run', 'image', 'a fox', '-o', path])).toMatchObject({ code: 0 })
  })
})

it('a name that is too long ends a run with 2 before anything is sent, also if it contains the id', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), `${'x'.repeat(240)}-{id}.{ext}`)
  const { code, stderr } = await service.run(['run', 'image', 'a fox', '-o', path])
  expect(code).toBe(2)
  expect(stderr).toContain('the name is too long. Nothing was sent.')
  expect(service.requests).toEqual([])
})

it('a batch creates a file whose name has the longest length with its extension', async () => {
  const name = 'x'.repeat(250)
  const batch = await createFamily([{ ...FOX, output: `${name}.{ext}` }])
  expect(await batch.run()).toMatchObject({ code: 0 })
  expect(batch.pictures()).toEqual([`${name}.png`])
  batch.write([{ ...FOX, output: `${name}xx.{ext}` }])
  expect(await batch.run(['--force'])).toMatchObject({ code: 2 })
})

describe('a foreign file whose name differs in letter case or Unicode form', () => {
  const CAFE = { name: 'café', prompt: 'a café' }
  const files: [string, { name: string; prompt: string }][] = [
    ['FOX.png', { name: 'fox', prompt: 'a fox' }],
    ['fox.PNG', { name: 'Fox', prompt: 'a fox' }],
    ['café.png'.normalize('NFD'), CAFE],
  ]

  it.each(files)(
    '%j is a conflict where the file system opens it, and nothing is sent',
    async (file, row) => {
      const batch = await createFamily([row])
      writeFileSync(batch.path(file), 'foreign')
      const fileSystem = { ...systemFiles, opensOtherSpelling: () => true }
      for (const words of [['--dry-run'], []]) {
        const { code, stderr } = await batch.run(words, { fileSystem })
        expect([code, stderr]).toEqual([2, expect.stringContaining('not created by this batch')])
      }
      expect(batch.created()).toEqual([])
    },
  )

  it.each(files)('%j is another file where the file system does not open it', async (file, row) => {
    const batch = await createFamily([row])
    writeFileSync(batch.path(file), 'foreign')
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(readFileSync(batch.path(file), 'utf8')).toBe('foreign')
    expect(existsSync(batch.path(`${row.name}.png`))).toBe(true)
  })
})

it('`--only` takes the separator of Windows there, and an escape elsewhere', async () => {
  const entry = { name: 'fox', rowName: 'fox', output: 'icons/fox.png' } as ManifestEntry
  expect((await selectorFor(['icons\\*'], [entry], '\\'))(entry)).toBe(true)
  await expect(selectorFor(['icons\\*'], [entry], '/')).rejects.toMatchObject({ code: 'usage' })
})

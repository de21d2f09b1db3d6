/** Whole commands on file systems without hard links, and with names that are too long. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FileSystem } from '../../src/host/file-system.js'
import { createFamily } from '../support/family.js'
import { createCliService, ONE_PIXEL_PNG, outputOf, temporaryFolder, usageErrorOf } from '../support/index.js'

/** exFAT, as Linux reports it; the others are in test/host/files.test.ts. */
const fileSystem: FileSystem = {
  link: async () => {
    throw Object.assign(new Error('EPERM: link'), { code: 'EPERM' })
  },
}

const FOX = { name: 'fox', prompt: 'a fox', output: 'fox.png' }
const HEN = { name: 'hen', prompt: 'a hen', output: 'hen.png' }

describe('on a file system without hard links', () => {
  it('a run downloads its output, and replaces no file', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    const line = `run image "a fox" -o ${path}`
    expect(outputOf(await service.run(line, { fileSystem }))).toBe(`${path}\n`)
    expect(readFileSync(path).equals(ONE_PIXEL_PNG)).toBe(true)
    usageErrorOf(await service.run(line, { fileSystem }))
  })

  it('a batch downloads its outputs, and swaps the files of two rows', async () => {
    const batch = await createFamily([FOX, HEN])
    outputOf(await batch.run([], { fileSystem }))
    const [fox, hen] = ['fox.png', 'hen.png'].map((name) => readFileSync(batch.path(name)))
    batch.created()
    batch.write([
      { ...FOX, output: 'hen.png' },
      { ...HEN, output: 'fox.png' },
    ])
    outputOf(await batch.run([], { fileSystem }))
    expect(batch.created()).toEqual([])
    expect(readFileSync(batch.path('hen.png'))).toEqual(fox)
    expect(readFileSync(batch.path('fox.png'))).toEqual(hen)
    expect(
      readdirSync(batch.folder).filter((name) => name.startsWith('.fox') || name.startsWith('.hen')),
    ).toEqual([])
  })
})

it('a name that is too long is a usage error before anything is sent, also if it contains the id', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), `${'x'.repeat(240)}-{id}.{ext}`)
  expect(usageErrorOf(await service.run(`run image "a fox" -o ${path}`))).toContain(
    'the name is too long. Nothing was sent.',
  )
  expect(service.requests).toEqual([])
})

it('a batch writes a file whose name with its extension has the longest length, and refuses a longer one', async () => {
  const name = 'x'.repeat(250)
  const batch = await createFamily([{ ...FOX, output: `${name}.{ext}` }])
  outputOf(await batch.run())
  expect(batch.pictures()).toEqual([`${name}.png`])
  batch.write([{ ...FOX, output: `${name}xx.{ext}` }])
  expect(await batch.run('--force')).toMatchObject({ code: 2 })
})

const CAFE = { name: 'café', prompt: 'a café' }
const files: [string, { name: string; prompt: string }][] = [
  ['FOX.png', { name: 'fox', prompt: 'a fox' }],
  ['fox.PNG', { name: 'Fox', prompt: 'a fox' }],
  ['café.png'.normalize('NFD'), CAFE],
]

it.each(files)(
  'a foreign file %j is another file if the file system does not open it by the name of the output',
  async (file, row) => {
    const batch = await createFamily([row])
    writeFileSync(batch.path(file), 'foreign')
    outputOf(await batch.run())
    expect(readFileSync(batch.path(file), 'utf8')).toBe('foreign')
    expect(existsSync(batch.path(`${row.name}.png`))).toBe(true)
  },
)

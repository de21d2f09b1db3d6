import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { DownloadOptions } from '../../src/download/index.js'
import { createGate, responseOf, temporaryFolder, until } from '../support/index.js'
import { contents, download, PNG, toPath } from './download-setup.js'

/** Downloads to a path. `chunks`: what arrives. */
const put = (
  path: string,
  more: Partial<DownloadOptions> = {},
  chunks: () => AsyncIterable<Uint8Array> = () => once(PNG),
) =>
  download({
    ...toPath(path),
    ...more,
    fetch: async () => ({ ...responseOf({ status: 200 }), body: chunks() }),
  })

async function* once(...chunks: readonly Uint8Array[]) {
  yield* chunks
}

const refused = (message: string) => ({
  ok: false,
  waits: [],
  error: expect.objectContaining({
    code: 'download_failed',
    exitCode: 12,
    runId: 'run-1',
    message: expect.stringContaining(message),
  }),
})

it('a file has the folders it needs, and the mode of any file', async () => {
  const folder = temporaryFolder()
  expect(await put(join(folder, 'a/b/fox.png'))).toMatchObject({ ok: true })
  expect(contents(folder)).toEqual(['a', 'a/b', 'a/b/fox.png'])
  expect(statSync(join(folder, 'a/b/fox.png')).mode & 0o777).toBe(0o666 & ~process.umask())
})

it('without --overwrite a file that came meanwhile stays', async () => {
  const path = join(temporaryFolder(), 'fox.png')
  const late = async function* () {
    yield Buffer.alloc(5_000)
    writeFileSync(path, 'mine')
    yield PNG
  }
  expect(await put(path, {}, late)).toEqual(refused('already exists'))
  expect(readFileSync(path, 'utf8')).toBe('mine')
  expect(contents(join(path, '..'))).toEqual(['fox.png'])
})

it('without --overwrite a name that waits for its extension is refused at the first bytes', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'run-1.png'), 'mine')
  let asked = 0
  const chunks = async function* () {
    for (; asked < 1_000; asked++) yield Buffer.concat([PNG, Buffer.alloc(8_000)])
  }
  expect(await put(join(folder, '{id}.{ext}'), {}, chunks)).toEqual(refused('run-1.png already exists'))
  // One piece is received while the first bytes are looked at.
  expect(asked).toBeLessThan(100)
  expect(contents(folder)).toEqual(['run-1.png'])
})

it('without --overwrite a link is in the way, also one that leads nowhere', async () => {
  const path = join(temporaryFolder(), 'fox.png')
  symlinkSync('nowhere', path)
  expect(await put(path)).toEqual(refused('already exists'))
})

it.each([
  ['without --overwrite one succeeds, and the other names the file', false],
  ['with --overwrite both succeed, and the last one stays', true],
])('of two downloads to one path at once, %s', async (_, overwrite) => {
  const path = join(temporaryFolder(), 'fox.png')
  const both = createGate()
  let halfway = 0
  const racing = async function* (content: string) {
    yield Buffer.alloc(5_000, content)
    if (++halfway === 2) both.open()
    await both.after
    yield Buffer.from(content)
  }
  const results = await Promise.all(
    ['a', 'b'].map((content) => put(path, { overwrite }, () => racing(content))),
  )
  expect(results.filter(({ ok }) => ok)).toHaveLength(overwrite ? 2 : 1)
  for (const failed of results.filter(({ ok }) => !ok))
    expect(failed).toEqual(refused(`${path} already exists`))
  expect(contents(join(path, '..'))).toEqual(['fox.png'])
  const [a, b] = ['a', 'b'].map((content) => content.repeat(5_001))
  expect(overwrite ? [a, b] : results[0]?.ok ? [a] : [b]).toContain(readFileSync(path, 'utf8'))
})

describe('with --overwrite', () => {
  const overwrite = true

  it('a file is replaced, but only by a whole one', async () => {
    const path = join(temporaryFolder(), 'fox.png')
    writeFileSync(path, 'old')
    const broken = async function* () {
      yield PNG
      expect(readFileSync(path, 'utf8')).toBe('old')
      throw new Error('a bug')
    }
    expect(await put(path, { overwrite }, broken)).toMatchObject({ ok: false })
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(await put(path, { overwrite })).toMatchObject({ ok: true })
    expect(readFileSync(path)).toEqual(PNG)
    expect(contents(join(path, '..'))).toEqual(['fox.png'])
  })

  it('a file of an earlier command that is unchanged is not downloaded again', async () => {
    const path = join(temporaryFolder(), 'fox.png')
    const first = await put(path)
    const earlier = first.ok ? [first.file] : []
    const never = async function* () {
      yield* once()
      throw new Error('a second request')
    }
    expect(await put(path, { overwrite, earlier }, never)).toMatchObject({ ok: true, file: { path } })
    writeFileSync(path, Buffer.alloc(PNG.length))
    expect(await put(path, { overwrite, earlier })).toMatchObject({ ok: true })
    expect(readFileSync(path)).toEqual(PNG)
  })

  it('a link is replaced itself', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'other'), 'mine')
    symlinkSync('other', join(folder, 'fox.png'))
    expect(await put(join(folder, 'fox.png'), { overwrite })).toMatchObject({ ok: true })
    expect(lstatSync(join(folder, 'fox.png')).isFile()).toBe(true)
    expect(readFileSync(join(folder, 'other'), 'utf8')).toBe('mine')
  })

  it('a folder, a device or a link to one is not', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'fox.png'))
    symlinkSync('/dev/null', join(folder, 'null'))
    expect(await put(join(folder, 'fox.png'), { overwrite })).toEqual(refused('fox.png is a folder'))
    expect(await put(join(folder, 'null'), { overwrite })).toEqual(refused('is not a regular file'))
    expect(await put('/dev/full', { overwrite })).toEqual(refused('/dev/full is not a regular file'))
    expect(lstatSync('/dev/full').isCharacterDevice()).toBe(true)
  })
})

// A full disk: test/e2e/full-disk.test.ts.
it.each<[string, (path: string) => void, boolean, string]>([
  ['a folder', mkdirSync, false, 'fox.png is a folder'],
  ['a device, with --overwrite', (path) => symlinkSync('/dev/null', path), true, 'is not a regular file'],
])(
  'a download fails with %s under its name by the time the file is complete',
  async (_, make, overwrite, message) => {
    const path = join(temporaryFolder(), 'fox.png')
    const chunks = async function* () {
      yield Buffer.alloc(5_000)
      make(path)
      yield PNG
    }
    expect(await put(path, { overwrite }, chunks)).toEqual(refused(message))
    expect(contents(join(path, '..'))).toEqual(['fox.png'])
  },
)

it('a download fails with a file where a folder should be', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a'), '')
  expect(await put(join(folder, 'a/fox.png'))).toEqual(refused('a part of the path is a file'))
  expect(await put(join(folder, 'a/b/{id}.{ext}'))).toEqual(refused('a part of the path is a file'))
})

it('a download fails when its folder is removed meanwhile', async () => {
  const folder = join(temporaryFolder(), 'out')
  const chunks = async function* () {
    yield Buffer.alloc(5_000)
    await until('a part', () => existsSync(folder) && contents(folder).length > 0)
    rmSync(folder, { recursive: true })
    yield PNG
  }
  expect(await put(join(folder, 'fox.png'), {}, chunks)).toEqual(refused('the folder does not exist'))
  expect(contents(join(folder, '..'))).toEqual([])
})

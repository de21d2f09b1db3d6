/** What every implementation of the store of files keeps to. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type ByteRange, type FileStore, StorageUnavailable } from '../../src/service/files/contract.js'

/** The whole file, or undefined when it is not there or larger. */
export async function readStored(
  files: Pick<FileStore, 'find'>,
  key: string,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const found = await files.find(key)
  if (found === undefined || found.bytes > maxBytes) return undefined
  return await buffer(await found.read())
}

export interface OpenedFiles {
  readonly files: FileStore
  /** A folder from which files can be moved into the store. */
  readonly work: string
  /** Takes the storage away as a whole, and gives the function that brings it back. */
  takeAway(): () => void
}

/** `open` gives an empty store; it is called within each test. */
export function filesContract(open: () => OpenedFiles): void {
  async function textOf(files: FileStore, key: string, range?: ByteRange): Promise<string | undefined> {
    const found = await files.find(key)
    return found && (await text(await found.read(range)))
  }
  test('a file is stored from bytes or from a path, and found with its size', async () => {
    const { files, work } = open()
    writeFileSync(join(work, 'clip.mp4'), 'a clip')
    await files.put('token/clip.mp4', { path: join(work, 'clip.mp4') })
    await files.put('a1b2', { bytes: Buffer.from('an image') })
    expect(await files.find('token/clip.mp4')).toMatchObject({ bytes: 6 })
    expect([await textOf(files, 'token/clip.mp4'), await textOf(files, 'a1b2')]).toEqual([
      'a clip',
      'an image',
    ])
  })

  test.each(['nothing', 'token', 'token/other.mp4', 'token/clip.mp4/x'])('%s is not found', async (key) => {
    const { files } = open()
    await files.put('token/clip.mp4', { bytes: Buffer.from('a clip') })
    expect(await files.find(key)).toBeUndefined()
  })

  test('reads a range of a file', async () => {
    const { files } = open()
    await files.put('ten', { bytes: Buffer.from('abcdefghij') })
    expect(await textOf(files, 'ten', { start: 2, end: 4 })).toBe('cde')
    expect(await textOf(files, 'ten', { start: 0, end: 0 })).toBe('a')
    expect(await textOf(files, 'ten', { start: 9, end: 9 })).toBe('j')
  })

  test('every operation fails as unavailable while the storage is away, and works again afterwards', async () => {
    const { files, work, takeAway } = open()
    const path = join(work, 'clip.mp4')
    writeFileSync(path, 'a clip')
    await files.put('token/a.png', { bytes: Buffer.from('a') })
    const found = await files.find('token/a.png')
    const bringBack = takeAway()
    const asked: Record<string, () => Promise<unknown>> = {
      'find a file': () => files.find('token/a.png'),
      'find none': () => files.find('none'),
      'find none in a folder': () => files.find('none/a.png'),
      'read a file': async () => await found?.read(),
      'put bytes': () => files.put('b', { bytes: Buffer.from('b') }),
      'put a path': () => files.put('token2/clip.mp4', { path }),
      remove: () => files.remove('token/a.png'),
      'remove none': () => files.remove('none'),
      'remove a folder': () => files.removeBelow('token'),
    }
    for (const [what, ask] of Object.entries(asked))
      await expect(ask(), what).rejects.toThrow(StorageUnavailable)
    bringBack()
    expect(await textOf(files, 'token/a.png')).toBe('a')
    expect(await files.find('none')).toBeUndefined()
    await files.put('token2/clip.mp4', { path })
    expect(await textOf(files, 'token2/clip.mp4')).toBe('a clip')
  })

  test.each(['', 'an im', 'an image, and more'])(
    'a file of which only %j was stored is stored again',
    async (kept) => {
      const { files, work } = open()
      for (const key of ['a1b2', 'token/clip.mp4']) await files.put(key, { bytes: Buffer.from(kept) })
      writeFileSync(join(work, 'clip.mp4'), 'an image')
      await files.put('a1b2', { bytes: Buffer.from('an image') })
      await files.put('token/clip.mp4', { path: join(work, 'clip.mp4') })
      for (const key of ['a1b2', 'token/clip.mp4']) expect(await textOf(files, key)).toBe('an image')
    },
  )

  test('a missing source is an error of the file, not of the storage', async () => {
    const { files, work } = open()
    await expect(files.put('token/a.png', { path: join(work, 'none') })).rejects.toMatchObject({
      code: 'ENOENT',
    })
    expect(await files.find('token/a.png')).toBeUndefined()
  })

  test('removes a file, and ignores one that does not exist', async () => {
    const { files } = open()
    await files.put('one/a.png', { bytes: Buffer.from('a') })
    await files.put('one/b.png', { bytes: Buffer.from('b') })
    for (const key of ['one/a.png', 'one/a.png', 'none']) await files.remove(key)
    expect(await files.find('one/a.png')).toBeUndefined()
    expect(await textOf(files, 'one/b.png')).toBe('b')
    await files.remove('one/b.png')
    expect(await files.find('one/b.png')).toBeUndefined()
  })

  test('concurrent writers of one key leave one complete file', async () => {
    const { files } = open()
    const bytes = Buffer.alloc(100_000, 'x')
    await Promise.all(Array.from({ length: 8 }, () => files.put('same', { bytes })))
    expect(await readStored(files, 'same', 1_000_000)).toEqual(bytes)
  })

  test('removes all files of a run, and no others', async () => {
    const { files } = open()
    const keys = ['run_1/inputs/a1', 'run_1/x/a.png', 'run_1/x/b.png', 'run_12/x/a.png']
    for (const key of keys) await files.put(key, { bytes: Buffer.from(key) })
    for (let times = 0; times < 2; times++) await files.removeBelow('run_1')
    for (const key of keys.slice(0, 3)) expect(await files.find(key)).toBeUndefined()
    expect(await textOf(files, 'run_12/x/a.png')).toBe('run_12/x/a.png')
  })
}

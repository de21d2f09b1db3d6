/** What every implementation of the store of files keeps to. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ByteRange, type FileStore, readStored } from '../../src/service/files/contract.js'

export interface FilesOnClock {
  readonly files: FileStore
  /** A folder from which files can be moved into the store. */
  readonly work: string
  /** Makes what is stored older; undefined where a test would have to wait. */
  readonly advance?: ((ms: number) => void) | undefined
}

/** `open` gives an empty store; it is called within each test. */
export function filesContract(open: () => FilesOnClock, { canAge = true } = {}): void {
  async function textOf(files: FileStore, key: string, range?: ByteRange): Promise<string | undefined> {
    const found = await files.find(key)
    if (found === undefined) return undefined
    const chunks: Uint8Array[] = []
    for await (const chunk of await found.read(range)) chunks.push(chunk as Uint8Array)
    return Buffer.concat(chunks).toString()
  }
  const older = async (files: FileStore, ageMs: number) => {
    const keys: string[] = []
    for await (const key of files.listOlder(ageMs)) keys.push(key)
    return keys.sort()
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

  test('a part is read', async () => {
    const { files } = open()
    await files.put('ten', { bytes: Buffer.from('abcdefghij') })
    expect(await textOf(files, 'ten', { start: 2, end: 4 })).toBe('cde')
    expect(await textOf(files, 'ten', { start: 0, end: 0 })).toBe('a')
    expect(await textOf(files, 'ten', { start: 9, end: 9 })).toBe('j')
  })

  test('the whole file is read into memory up to a size', async () => {
    const { files } = open()
    await files.put('ten', { bytes: Buffer.from('abcdefghij') })
    expect(await readStored(files, 'ten', 10)).toEqual(Buffer.from('abcdefghij'))
    expect(await readStored(files, 'ten', 9)).toBeUndefined()
    expect(await readStored(files, 'none', 9)).toBeUndefined()
  })

  test.skipIf(!canAge)('a file that exists is not written again, but its age begins anew', async () => {
    const { files, advance } = open()
    await files.put('a1b2', { bytes: Buffer.from('older') })
    advance?.(60_000)
    expect(await older(files, 30_000)).toEqual(['a1b2'])
    await files.put('a1b2', { bytes: Buffer.from('newer') })
    expect(await textOf(files, 'a1b2')).toBe('older')
    expect(await older(files, 30_000)).toEqual([])
  })

  test.skipIf(!canAge)('files are listed by age', async () => {
    const { files, advance } = open()
    await files.put('one/a.png', { bytes: Buffer.from('a') })
    await files.put('one/b.png', { bytes: Buffer.from('b') })
    advance?.(60_000)
    await files.put('two/c.png', { bytes: Buffer.from('c') })
    expect(await older(files, 30_000)).toEqual(['one/a.png', 'one/b.png'])
    expect(await older(files, 90_000)).toEqual([])
    advance?.(30_001)
    expect(await older(files, 30_000)).toEqual(['one/a.png', 'one/b.png', 'two/c.png'])
  })

  test('a removed file is gone, and what is not there can be removed', async () => {
    const { files } = open()
    await files.put('one/a.png', { bytes: Buffer.from('a') })
    await files.put('one/b.png', { bytes: Buffer.from('b') })
    for (const key of ['one/a.png', 'one/a.png', 'none']) await files.remove(key)
    expect(await files.find('one/a.png')).toBeUndefined()
    expect(await textOf(files, 'one/b.png')).toBe('b')
    await files.remove('one/b.png')
    expect(await older(files, -1)).toEqual([])
  })

  test('several writers of one key leave one whole file', async () => {
    const { files } = open()
    const bytes = Buffer.alloc(100_000, 'x')
    await Promise.all(Array.from({ length: 8 }, () => files.put('same', { bytes })))
    expect(await readStored(files, 'same', 1_000_000)).toEqual(bytes)
    expect(await older(files, -1)).toEqual(['same'])
  })
}

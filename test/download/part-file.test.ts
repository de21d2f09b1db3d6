/** Downloads that go on where an earlier command stopped. */
import {
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { broken, etagOf, host, into, OTHER, partIn, sha256, WHOLE } from './breaking-host.js'
import { contents, createWork, newFolder, output } from './download-setup.js'

describe('from one command to the next', () => {
  /** Puts a link to it in its place. */
  const link = (path: string) => {
    const to = join(newFolder(), 'elsewhere')
    renameSync(path, to)
    symlinkSync(to, path)
  }

  it('the network ended it: the part stays, and the next one goes on', async () => {
    const folder = newFolder()
    const [failed] = await broken(folder)
    expect(failed).toMatchObject({ ok: false })
    if (failed?.ok === false)
      expect(failed.error.hint).toBe(
        '33 % of the file is kept; a download to the same path resumes there. The run succeeded and is paid for.',
      )
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^\.run-1\.[0-9a-f]{8}\.part$/)])
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { path: `${folder}/run-1.png`, sha256: sha256(WHOLE), content_type: 'image/png' } },
    ])
    expect(next.ranges()).toEqual(['bytes=100000-'])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a signal ended it: the part stays', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const { url } = await host({ breakAfter: 150_000 })
    await expect(
      createWork().download([output(url)], {
        ...into(folder),
        signal: stop.signal,
        onProgress: ({ receivedBytes }) => {
          if (receivedBytes > 50_000) stop.abort('SIGINT')
        },
      }),
    ).rejects.toBe('SIGINT')
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([{ ok: true }])
    expect(next.ranges()).toEqual([expect.stringMatching(/^bytes=/)])
  })

  it('holds no address: that is as good as a key', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    await createWork().download([output(`${url}/a?signature=secret`)], into(folder))
    expect(readFileSync(join(folder, partIn(folder), 'about.json'), 'utf8')).not.toMatch(/secret|http/)
  })

  it('is of no use without a name or a date: nothing stays', async () => {
    const folder = newFolder()
    await broken(folder, { etag: '' })
    expect(contents(folder)).toEqual([])
  })

  it('is of no use when the host has it no more', async () => {
    const folder = newFolder()
    await broken(folder)
    const { url } = await host({ status: 404 })
    expect(await createWork().download([output(url)], into(folder))).toMatchObject([{ ok: false }])
    expect(contents(folder)).toEqual([])
  })

  it('belongs to its run, its output and its place', async () => {
    const folder = newFolder()
    await broken(folder)
    const next = await host({})
    await createWork().download([output(next.url, { runId: 'run-2' })], into(folder))
    await createWork().download([output(next.url)], {
      target: { kind: 'template', template: join(folder, 'fox.png') },
    })
    expect(next.ranges()).toEqual([undefined, undefined])
    expect(readdirSync(folder)).toContain(partIn(folder))
  })

  it.each<[string, (part: string) => void]>([
    ['about which nothing is known', (part) => writeFileSync(join(part, 'about.json'), '{"etag": ')],
    ['about which nothing was written', (part) => rmSync(join(part, 'about.json'))],
    ['that is a link', (part) => link(join(part, 'bytes'))],
    ['whose folder is a link', link],
    ['that holds less than a file needs to be known by', (part) => truncateSync(join(part, 'bytes'), 4_000)],
    ['that is empty', (part) => truncateSync(join(part, 'bytes'), 0)],
    [
      'whose end may not have reached the disk before the machine stopped',
      (part) => {
        writeFileSync(join(part, 'about.json'), JSON.stringify({ etag: etagOf(WHOLE), flushedBytes: 10 }))
        utimesSync(join(part, 'bytes'), 0, 0)
      },
    ],
  ])('a part %s is begun anew', async (_, spoil) => {
    const folder = newFolder()
    await broken(folder)
    spoil(join(folder, partIn(folder)))
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { sha256: sha256(WHOLE) } },
    ])
    expect(next.ranges()).toEqual([undefined])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a part that is whole only gets its name: nothing is asked for', async () => {
    const folder = newFolder()
    await broken(folder)
    const part = join(folder, partIn(folder))
    writeFileSync(join(part, 'bytes'), WHOLE)
    writeFileSync(
      join(part, 'about.json'),
      JSON.stringify({ etag: etagOf(WHOLE), totalBytes: WHOLE.length, flushedBytes: WHOLE.length }),
    )
    const next = await host({})
    expect(await createWork().download([output(next.url)], into(folder))).toMatchObject([
      { ok: true, file: { sha256: sha256(WHOLE) } },
    ])
    expect(next.asked).toEqual([])
  })

  it.each<[string, (bytes: string, path: string) => void, Buffer]>([
    ['got their name in the moment of a kill are not written over', linkSync, OTHER],
    ['got their name in the moment of a kill are not added to', linkSync, WHOLE],
    ['moved to their name in the moment of a kill leave nothing', renameSync, OTHER],
  ])('bytes that %s', async (_, move, file) => {
    const folder = newFolder()
    await broken(folder)
    const path = join(folder, 'run-1.png')
    const bytes = readFileSync(join(folder, partIn(folder), 'bytes'))
    move(join(folder, partIn(folder), 'bytes'), path)
    const seen: number[] = []
    const next = await host({ file })
    await createWork().download([output(next.url)], {
      ...into(folder),
      overwrite: true,
      onProgress: () => seen.push(statSync(path).size),
    })
    expect(seen.every((size) => size === bytes.length || size === file.length)).toBe(true)
    expect(next.ranges()).toEqual([undefined])
    expect(sha256(readFileSync(path))).toBe(sha256(file))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('a file in the way removes the part that it makes useless', async () => {
    const folder = newFolder()
    const target = { kind: 'template', template: join(folder, 'fox.png') } as const
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    await createWork().download([output(url)], { target })
    writeFileSync(join(folder, 'fox.png'), 'mine')
    expect(await createWork().download([output(url)], { target })).toMatchObject([{ ok: false }])
    expect(contents(folder)).toEqual(['fox.png'])
  })

  it('a link that has expired while nobody can be asked for a fresh one', async () => {
    const folder = newFolder()
    await broken(folder)
    const { url } = await host({ status: 403 })
    const freshUrl = () => Promise.reject(new Error('the service is away'))
    expect(await createWork().download([output(url, { freshUrl })], into(folder))).toMatchObject([
      { ok: false },
    ])
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/\.part$/)])
  })

  it('never takes the bytes of one file for those of another, killed when it may be', async () => {
    const folder = newFolder()
    await broken(folder)
    const nameless = await host({ file: OTHER, etag: '', ranges: 'none' })
    const seen: string[] = []
    await createWork().download([output(nameless.url)], {
      ...into(folder),
      onProgress: ({ receivedBytes }) => {
        const own = partIn(folder)
        if (receivedBytes > 70_000 && own !== '') seen.push(...readdirSync(join(folder, own)))
      },
    })
    expect(new Set(seen)).toEqual(new Set(['bytes']))
  })

  it('a file that came home another way makes the part useless', async () => {
    const folder = newFolder()
    await broken(folder)
    const path = join(folder, 'run-1.png')
    writeFileSync(path, WHOLE)
    const file = { path, bytes: WHOLE.length, sha256: sha256(WHOLE), url: 'x', content_type: 'image/png' }
    const next = await host({})
    await createWork().download([output(next.url)], { ...into(folder), earlier: [file] })
    expect(next.asked).toEqual([])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('nothing is kept in a folder that could not be found again', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    const target = { kind: 'template', template: join(folder, '{ext}', 'fox.{ext}') } as const
    expect(await createWork().download([output(url)], { target })).toMatchObject([{ ok: false }])
    expect(contents(folder)).toEqual(['png'])
  })

  it('has a name of at most 255 bytes', async () => {
    const folder = newFolder()
    const target = { kind: 'template', template: join(folder, `${'ü'.repeat(125)}.png`) } as const
    const { url } = await host({ breakAfter: 100_000 }, { breakAfter: 0 })
    await createWork().download([output(url)], { target })
    const next = await host({})
    expect(await createWork().download([output(next.url)], { target })).toMatchObject([{ ok: true }])
    expect(next.ranges()).toEqual(['bytes=100000-'])
  })
})

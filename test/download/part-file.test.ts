/** A download resumes where an earlier command stopped, from the part that this command left. */
import {
  closeSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { processLockIn } from '../../src/host/process-lock.js'
import { until } from '../support/until.js'
import { etagOf, host, leavePart, OTHER, partIn, WHOLE } from './breaking-host.js'
import { contents, download, newFolder, sha256, toPath } from './download-setup.js'

const BROKEN = [{ breakAfter: 100_000 }, { breakAfter: 0 }]
const PART = /^\.run-1\.[0-9a-f]{8}\.part$/
/** More than any system counts to. */
const NOBODY = 2 ** 31 - 1

/** A folder with a part, its path, and a host with the whole file. */
async function withPart() {
  const folder = newFolder()
  await leavePart(folder)
  const part = join(folder, partIn(folder))
  return { folder, part, bytes: join(part, 'bytes'), about: join(part, 'about.json'), next: await host({}) }
}

/** A process that was killed, and the state folder that shows it. */
function endedProcess() {
  const stateFolder = newFolder()
  const lock = processLockIn(stateFolder)
  const { id } = lock
  lock.end(true)
  return { stateFolder, id }
}

/** Puts a link to it in its place. */
const link = (path: string) => {
  const to = join(newFolder(), 'elsewhere')
  renameSync(path, to)
  symlinkSync(to, path)
}

describe('a part stays', () => {
  it('when the network broke; the next command resumes', async () => {
    const folder = newFolder()
    const { error } = await download({ url: `${(await host(...BROKEN)).url}/a?signature=secret`, folder })
    expect(error?.hint).toBe(
      '33 % of the file is kept; a download to the same path resumes there. The run succeeded and is paid for.',
    )
    expect(readdirSync(folder)).toEqual([expect.stringMatching(PART)])
    // The URL of an output is as good as a key.
    expect(readFileSync(join(folder, partIn(folder), 'about.json'), 'utf8')).not.toMatch(/secret|http/)
    const next = await host({})
    expect(await download({ url: next.url, folder })).toMatchObject({
      ok: true,
      file: { path: `${folder}/run-1.png`, sha256: sha256(WHOLE), content_type: 'image/png' },
    })
    expect(next.ranges()).toEqual(['bytes=100000-'])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('after a signal', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const { url } = await host({ breakAfter: 150_000 })
    const onProgress = ({ receivedBytes = 0 }) => {
      if (receivedBytes > 50_000) stop.abort('SIGINT')
    }
    await expect(download({ url, folder, signal: stop.signal, onProgress })).rejects.toBe('SIGINT')
    const next = await host({})
    expect(await download({ url: next.url, folder })).toMatchObject({ ok: true })
    expect(next.ranges()).toEqual([expect.stringMatching(/^bytes=/)])
  })

  it('when the link has expired and the service cannot be asked for a fresh one', async () => {
    const { folder } = await withPart()
    const { url } = await host({ status: 403 })
    const freshUrl = () => Promise.reject(new Error('the service is away'))
    expect(await download({ url, folder, freshUrl })).toMatchObject({ ok: false })
    expect(readdirSync(folder)).toEqual([expect.stringMatching(PART)])
  })

  it('when another run, or another path, is downloaded', async () => {
    const { folder, part, next } = await withPart()
    await download({ url: next.url, folder, runId: 'run-2' })
    await download({ url: next.url, target: toPath(join(folder, 'fox.png')).target })
    expect(next.ranges()).toEqual([undefined, undefined])
    expect(readdirSync(part)).toContain('bytes')
  })

  it('under a name of at most 255 bytes', async () => {
    const { target } = toPath(join(newFolder(), `${'ü'.repeat(125)}.png`))
    await download({ url: (await host(...BROKEN)).url, target })
    const next = await host({})
    expect(await download({ url: next.url, target })).toMatchObject({ ok: true })
    expect(next.ranges()).toEqual(['bytes=100000-'])
  })

  it('alone, of several downloads at once that broke', async () => {
    const folder = newFolder()
    const { url } = await host({ breakAfter: 100_000 })
    await Promise.all([1, 2, 3].map(() => download({ url, folder })))
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

it('is described only when it is interrupted, if the file is small', async () => {
  const folder = newFolder()
  const stop = new AbortController()
  const file = WHOLE.subarray(0, 200_000)
  const { url } = await host({ file, stopAfter: 100_000 })
  const downloading = download({ url, folder, signal: stop.signal })
  const own = () => join(folder, partIn(folder))
  await until('its bytes', () => statSync(join(own(), 'bytes'), { throwIfNoEntry: false })?.size === 100_000)
  expect(readdirSync(own())).toEqual(['bytes'])
  stop.abort('SIGINT')
  await expect(downloading).rejects.toBe('SIGINT')
  expect(readdirSync(own()).sort()).toEqual(['about.json', 'bytes'])
  const next = await host({ file })
  expect(await download({ url: next.url, folder })).toMatchObject({ ok: true })
  expect(next.ranges()).toEqual(['bytes=100000-'])
})

describe('no part stays', () => {
  it('without an ETag or a date', async () => {
    const folder = newFolder()
    const [first, then] = BROKEN.map((turn) => ({ ...turn, etag: '' }))
    const { url } = await host(first ?? {}, then ?? {})
    expect(await download({ url, folder })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual([])
  })

  it('when the host no longer has the file', async () => {
    const { folder } = await withPart()
    const { url } = await host({ status: 404 })
    expect(await download({ url, folder })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual([])
  })

  it('when a file already exists under the name', async () => {
    const { folder, next } = await withPart()
    writeFileSync(join(folder, 'run-1.png'), 'mine')
    expect(await download({ url: next.url, folder })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('when an earlier command completed the file meanwhile', async () => {
    const { folder, next } = await withPart()
    const path = join(folder, 'run-1.png')
    writeFileSync(path, WHOLE)
    const file = { path, bytes: WHOLE.length, sha256: sha256(WHOLE), url: 'x', content_type: 'image/png' }
    await download({ url: next.url, folder, earlier: [file] })
    expect(next.asked).toEqual([])
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('in a folder that a later command could not find', async () => {
    const folder = newFolder()
    const { target } = toPath(join(folder, '{ext}', 'fox.{ext}'))
    expect(await download({ url: (await host(...BROKEN)).url, target })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual(['png'])
  })
})

it.each<[string, (part: string) => void]>([
  ['whose metadata is cut off', (part) => writeFileSync(join(part, 'about.json'), '{"etag": ')],
  ['without metadata', (part) => rmSync(join(part, 'about.json'))],
  ['that is a link', (part) => link(join(part, 'bytes'))],
  ['whose folder is a link', link],
  ['that is too short to detect the file type', (part) => truncateSync(join(part, 'bytes'), 4_000)],
  ['that is empty', (part) => truncateSync(join(part, 'bytes'), 0)],
  [
    'whose end may not have reached the disk before the machine stopped',
    (part) => {
      writeFileSync(join(part, 'about.json'), JSON.stringify({ etag: etagOf(WHOLE), flushedBytes: 10 }))
      const secondBefore = Date.now() / 1_000 - uptime() - 1
      utimesSync(join(part, 'bytes'), secondBefore, secondBefore)
    },
  ],
])('a part %s is not used', async (_, spoil) => {
  const { folder, part, next } = await withPart()
  spoil(part)
  expect(await download({ url: next.url, folder })).toMatchObject({
    ok: true,
    file: { sha256: sha256(WHOLE) },
  })
  expect(next.ranges()).toEqual([undefined])
  expect(contents(folder)).toEqual(['run-1.png'])
})

it('a part that was flushed before the machine stopped is resumed', async () => {
  const { folder, bytes, next } = await withPart()
  utimesSync(bytes, 0, 0)
  expect(await download({ url: next.url, folder })).toMatchObject({ ok: true })
  expect(next.ranges()).toEqual(['bytes=100000-'])
})

it('a part that is complete only gets its name', async () => {
  const { folder, bytes, about, next } = await withPart()
  writeFileSync(bytes, WHOLE)
  const metadata = { etag: etagOf(WHOLE), totalBytes: WHOLE.length, flushedBytes: WHOLE.length }
  writeFileSync(about, JSON.stringify(metadata))
  expect(await download({ url: next.url, folder })).toMatchObject({
    ok: true,
    file: { sha256: sha256(WHOLE) },
  })
  expect(next.asked).toEqual([])
})

it('what is not a part is left alone', async () => {
  const { folder, part, next } = await withPart()
  mkdirSync(join(folder, 'mine.part'))
  writeFileSync(`${part}.txt`, '')
  await download({ url: next.url, folder })
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/\.part\.txt$/), 'mine.part', 'run-1.png'])
})

describe('the bytes of one file are never those of another', () => {
  it.each<[string, (bytes: string, path: string) => void, Buffer]>([
    ['got their name in the moment of a kill are not overwritten', linkSync, OTHER],
    ['got their name in the moment of a kill are not appended to', linkSync, WHOLE],
    ['moved to their name in the moment of a kill leave nothing', renameSync, OTHER],
  ])('bytes that %s', async (_, move, file) => {
    const { folder, bytes } = await withPart()
    const path = join(folder, 'run-1.png')
    const { size } = statSync(bytes)
    move(bytes, path)
    const seen: number[] = []
    const next = await host({ file })
    await download({
      url: next.url,
      folder,
      overwrite: true,
      onProgress: () => seen.push(statSync(path).size),
    })
    expect(seen).not.toEqual([])
    expect(seen.every((each) => each === size || each === file.length)).toBe(true)
    expect(next.ranges()).toEqual([undefined])
    expect(sha256(readFileSync(path))).toBe(sha256(file))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('whenever the process is killed: the old metadata is gone before new bytes come', async () => {
    const { folder } = await withPart()
    const nameless = await host({ file: OTHER, etag: '', ranges: 'none', stopAfter: 100_000 })
    const stop = new AbortController()
    const own = () => join(folder, partIn(folder))
    const downloading = download({ url: nameless.url, folder, signal: stop.signal })
    const newBytes = await until('new bytes', () => {
      const files = readdirSync(own())
      const bytes = files.includes('bytes') ? readFileSync(join(own(), 'bytes')) : Buffer.alloc(0)
      return bytes.length > 0 && !WHOLE.subarray(0, bytes.length).equals(bytes) && files
    })
    expect(newBytes).toEqual(['bytes'])
    stop.abort('SIGINT')
    await expect(downloading).rejects.toBe('SIGINT')
  })

  it('while another process still writes to a part that was taken over', async () => {
    const { folder, bytes } = await withPart()
    const handle = openSync(bytes, 'r+')
    try {
      await download({ url: (await host({ file: OTHER })).url, folder })
      writeSync(handle, 'the end of another file', 200_000)
      expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(OTHER))
    } finally {
      closeSync(handle)
    }
  })
})

describe('parts of processes that are gone', () => {
  it('the longest is resumed, and the others are removed', async () => {
    const { folder, part, next } = await withPart()
    const { stateFolder, id } = endedProcess()
    for (const [at, bytes] of [120_000, 110_000].entries()) {
      const own = part.replace(/part$/, `${id}-${at}.part`)
      cpSync(part, own, { recursive: true })
      writeFileSync(join(own, 'bytes'), WHOLE.subarray(0, bytes))
    }
    await download({ url: next.url, folder, stateFolder })
    expect(next.ranges()).toEqual(['bytes=120000-'])
    expect(sha256(readFileSync(join(folder, 'run-1.png')))).toBe(sha256(WHOLE))
    expect(contents(folder)).toEqual(['run-1.png'])
  })

  it('one of a process that runs is left to it, however long it was silent', async () => {
    const { folder, part, next } = await withPart()
    const stateFolder = newFolder()
    const running = processLockIn(stateFolder)
    const own = part.replace(/part$/, `${running.id}-0.part`)
    renameSync(part, own)
    for (const path of [join(own, 'bytes'), own]) utimesSync(path, 1, 1)
    await download({ url: next.url, folder, stateFolder })
    running.end()
    expect(next.ranges()).toEqual([undefined])
    expect(existsSync(own)).toBe(true)
  })

  it.each([
    ['a minute ago is left to it', '0badf00d0badf00d', 60, false],
    ['six minutes ago is resumed', '0badf00d0badf00d', 360, true],
    ['a minute ago, by an earlier version, is left to it', `${NOBODY}-0`, 60, false],
    ['six minutes ago, by an earlier version, is resumed', `${NOBODY}-1@0badf00d`, 360, true],
  ])('one that was written to %s', async (_, owner, silentS, isResumed) => {
    const { folder, part, next } = await withPart()
    const own = part.replace(/part$/, `${owner}-0.part`)
    renameSync(part, own)
    const writtenAtS = Date.now() / 1_000 - silentS
    for (const path of [join(own, 'bytes'), own]) utimesSync(path, writtenAtS, writtenAtS)
    await download({ url: next.url, folder })
    expect(next.ranges()).toEqual([isResumed ? 'bytes=100000-' : undefined])
    expect(existsSync(own)).toBe(!isResumed)
  })
})

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createPreviewEngine } from '../../src/preview/index.js'
import { findFfmpeg } from '../../src/preview/video/ffmpeg-encoder.js'
import { boxAt, boxesIn } from './support/boxes.js'
import { chromium, playInChromium } from './support/chromium.js'
import { type Rendered, render } from './support/job.js'

const INPUT = { prompt: 'a red fox crosses a forest', aspect_ratio: '1:1', resolution: '720p', duration: '5' }
const hasFfprobe = spawnSync('ffprobe', ['-version']).status === 0
const hasX264 =
  findFfmpeg(process.env.PATH) !== undefined &&
  spawnSync('ffmpeg', ['-v', 'quiet', '-encoders'], { encoding: 'utf8' }).stdout.includes('libx264')

const ENCODERS = [
  { name: 'what comes with us', searchPath: '', profile: 66 },
  ...(hasX264 ? [{ name: 'ffmpeg', searchPath: process.env.PATH ?? '', profile: 100 }] : []),
]

/** The film of `INPUT`, made once with each. */
const films = new Map<string, Promise<Rendered>>()
function filmBy(searchPath: string): Promise<Rendered> {
  const film = films.get(searchPath) ?? render('video', INPUT, [], searchPath)
  films.set(searchPath, film)
  return film
}
afterAll(async () => {
  for (const film of films.values()) await rm((await film).folder, { recursive: true })
})

describe.each(ENCODERS)('with $name', ({ searchPath, profile }) => {
  let film: Rendered
  beforeAll(async () => {
    film = await filmBy(searchPath)
  })

  test('moov comes before the data, and the folder holds the film alone', async () => {
    expect(film.contentType).toBe('video/mp4')
    expect(boxesIn(film.bytes).map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
    expect(await readdir(film.folder)).toEqual(['film.mp4'])
  })

  test('it is H.264 of 720x720 in 4:2:0, 120 frames, exactly 5 s', () => {
    const movie = boxAt(film.bytes, 'moov/mvhd')
    expect(movie.readUInt32BE(16) / movie.readUInt32BE(12)).toBe(5)
    const media = boxAt(film.bytes, 'moov/trak/mdia/mdhd')
    expect(media.readUInt32BE(16) / media.readUInt32BE(12)).toBe(5)
    expect(media.readUInt32BE(4)).toBe(0) // no clock: the same input gives the same bytes

    const table = boxAt(film.bytes, 'moov/trak/mdia/minf/stbl')
    const times = boxAt(table, 'stts')
    expect([4, 8, 12].map((at) => times.readUInt32BE(at))).toEqual([1, 120, media.readUInt32BE(12) / 24])
    const [entry] = boxesIn(boxAt(table, 'stsd').subarray(8))
    expect(entry?.name).toBe('avc1')
    expect([entry?.content.readUInt16BE(24), entry?.content.readUInt16BE(26)]).toEqual([720, 720])
    // Baseline knows no other sampling than 4:2:0 at 8 bits; High says so in its description.
    const description = boxAt(entry?.content.subarray(78) ?? Buffer.alloc(0), 'avcC')
    expect(description[1]).toBe(profile)
    if (profile === 100) expect([...description.subarray(-4)]).toEqual([0xfd, 0xf8, 0xf8, 0])
  })

  test('every frame is where the tables say, and the key frames are those that are listed', () => {
    const table = boxAt(film.bytes, 'moov/trak/mdia/minf/stbl')
    const sizes = boxAt(table, 'stsz')
    const keys = boxAt(table, 'stss')
    const listed = Array.from({ length: keys.readUInt32BE(4) }, (_, index) =>
      keys.readUInt32BE(8 + index * 4),
    )
    expect(listed).toEqual([1, 25, 49, 73, 97])
    let at = boxAt(table, 'stco').readUInt32BE(8)
    expect(at).toBe((boxesIn(film.bytes)[2]?.offset ?? 0) + 8)
    for (let frame = 1; frame <= 120; frame++) {
      const size = sizes.readUInt32BE(8 + frame * 4)
      expect(film.bytes.readUInt32BE(at)).toBeLessThanOrEqual(size - 4)
      expect((film.bytes[at + 4] ?? 0) & 0x1f).toBe(listed.includes(frame) ? 5 : 1)
      at += size
    }
    expect(at).toBe(film.bytes.length)
  })

  test('progress rises to 1', () => {
    expect(film.progress.length).toBeGreaterThan(100)
    expect(film.progress).toEqual([...film.progress].sort((one, other) => one - other))
    expect(film.progress.at(-1)).toBe(1)
  })

  test('the same input gives the same film', async () => {
    const again = await render('video', INPUT, [], searchPath)
    expect(again.bytes.equals(film.bytes)).toBe(true)
    await rm(again.folder, { recursive: true })
  })

  test.skipIf(!hasFfprobe)('ffprobe decodes every frame of it', () => {
    const fields = 'stream=codec_name,pix_fmt,width,height,avg_frame_rate,duration,nb_read_frames,color_space'
    const options = [
      '-v',
      'error',
      '-count_frames',
      '-show_entries',
      fields,
      '-of',
      'json',
      join(film.folder, 'film.mp4'),
    ]
    const [stream] = JSON.parse(execFileSync('ffprobe', options, { encoding: 'utf8' })).streams
    expect(stream).toEqual({
      codec_name: 'h264',
      pix_fmt: 'yuv420p',
      width: 720,
      height: 720,
      avg_frame_rate: '24/1',
      duration: '5.000000',
      nb_read_frames: '120',
      color_space: 'bt709',
    })
  })

  test.skipIf(chromium === undefined)(
    'Chromium shows its last frame',
    async (context) => {
      const said = await playInChromium(chromium ?? '', film.bytes)
      context.skip(said === 'cannot', 'built without H.264')
      expect(said).toEqual({ width: 720, height: 720, seconds: 5 })
    },
    60_000,
  )

  test('an abort ends it at once with its reason, leaves nothing, and the next film is sound', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rushes-preview-'))
    const controller = new AbortController()
    const reason = new Error('enough')
    const startedAt = performance.now()
    let abortedAt = 0
    const onProgress = (fraction: number) => {
      if (fraction < 0.1 || controller.signal.aborted) return
      abortedAt = performance.now()
      controller.abort(reason)
    }
    const job = {
      kind: 'video',
      input: INPUT,
      folder,
      references: [],
      signal: controller.signal,
      onProgress,
    } as const
    await expect(createPreviewEngine({ searchPath }).render(job)).rejects.toBe(reason)
    // Nine tenths of the film were still to come.
    expect(performance.now() - abortedAt).toBeLessThan((abortedAt - startedAt) * 3)
    expect(await readdir(folder)).toEqual([])
    await expect(createPreviewEngine({ searchPath }).render(job)).rejects.toBe(reason)
    await rm(folder, { recursive: true })
  })
})

/** A folder with a program of the name `ffmpeg`; `$0.pid` beside it will have its process id. */
async function folderWithFfmpeg(script: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rushes-ffmpeg-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'ffmpeg'), `#!/bin/sh\necho $$ > "$0.pid"\n${script}\n`)
  await chmod(join(folder, 'ffmpeg'), 0o755)
  return folder
}

const isPosix = process.platform !== 'win32'

test.skipIf(!isPosix).each([
  ['lacks libx264', 'echo "Unknown encoder libx264" >&2; exit 1'],
  ['reads all and writes nothing', 'cat > /dev/null'],
  ['is broken halfway', 'head -c 3000000 > /dev/null; exit 3'],
])('an ffmpeg that %s is passed over, and progress never goes back', async (_, script) => {
  const film = await render('video', INPUT, [], await folderWithFfmpeg(script))
  onTestFinished(() => rm(film.folder, { recursive: true }))
  expect(boxesIn(film.bytes).map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
  expect(film.progress).toEqual([...film.progress].sort((one, other) => one - other))
})

test.skipIf(!isPosix)('an abort ends the ffmpeg that was started', async () => {
  const tools = await folderWithFfmpeg('exec sleep 60')
  const folder = await mkdtemp(join(tmpdir(), 'rushes-preview-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const stop = new AbortController()
  const engine = createPreviewEngine({ searchPath: tools })
  const rendering = engine.render({
    kind: 'video',
    input: INPUT,
    folder,
    references: [],
    signal: stop.signal,
  })
  const refused = expect(rendering).rejects.toThrow('enough')
  const pidFile = join(tools, 'ffmpeg.pid')
  await expect
    .poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').trim(), { timeout: 10_000 })
    .toMatch(/\d/)
  const pid = Number(readFileSync(pidFile, 'utf8'))
  stop.abort(new Error('enough'))
  await refused
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('ffmpeg is looked for in absolute folders alone, and has to be a program', async () => {
  const folder = await folderWithFfmpeg('exit 0')
  expect(findFfmpeg(['', '.', 'bin', folder].join(':'))).toBe(join(folder, 'ffmpeg'))
  await chmod(join(folder, 'ffmpeg'), 0o644)
  expect(findFfmpeg(folder)).toBeUndefined()
  expect(findFfmpeg(undefined)).toBeUndefined()
  expect(findFfmpeg('/nowhere')).toBeUndefined()
})

test('ten seconds are 240 frames, upright when they are asked to be', async () => {
  const { folder, bytes } = await render('video', { ...INPUT, aspect_ratio: '9:16', duration: '10' })
  onTestFinished(() => rm(folder, { recursive: true }))
  const movie = boxAt(bytes, 'moov/mvhd')
  expect(movie.readUInt32BE(16) / movie.readUInt32BE(12)).toBe(10)
  const table = boxAt(bytes, 'moov/trak/mdia/minf/stbl')
  expect(boxAt(table, 'stsz').readUInt32BE(8)).toBe(240)
  const [entry] = boxesIn(boxAt(table, 'stsd').subarray(8))
  expect([entry?.content.readUInt16BE(24), entry?.content.readUInt16BE(26)]).toEqual([720, 1280])
})

test('another prompt is another film, which leaves no listeners on the process', async () => {
  const count = () =>
    ['uncaughtException', 'unhandledRejection', 'exit'].map((event) => process.listenerCount(event))
  const before = count()
  const other = await render('video', { ...INPUT, prompt: 'a lighthouse at night' })
  onTestFinished(() => rm(other.folder, { recursive: true }))
  expect(count()).toEqual(before)
  const sizesOf = ({ bytes }: Rendered) => boxAt(bytes, 'moov/trak/mdia/minf/stbl/stsz')
  expect(sizesOf(other).equals(sizesOf(await filmBy('')))).toBe(false)
})

test.skipIf(!hasX264)('both encoders draw the same film', async () => {
  const [one, other] = await Promise.all([filmBy(''), filmBy(process.env.PATH ?? '')])
  const options = ['-v', 'error', '-i', join(one.folder, 'film.mp4'), '-i', join(other.folder, 'film.mp4')]
  const { stderr } = spawnSync('ffmpeg', [...options, '-lavfi', 'psnr', '-f', 'null', '-', '-v', 'info'], {
    encoding: 'utf8',
  })
  expect(Number(/average:([\d.]+)/.exec(stderr)?.[1])).toBeGreaterThan(34)
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

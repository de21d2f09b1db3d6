import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPreviewEngine } from '../../../../src/service/engines/preview/index.js'
import { boxAt, boxesIn } from './support/boxes.js'
import { type Rendered, render } from './support/job.js'

const INPUT = { prompt: 'a red fox crosses a forest', aspect_ratio: '1:1', resolution: '720p', duration: '5' }

let film: Rendered
const listeners = ['uncaughtException', 'unhandledRejection'].map((event) => process.listenerCount(event))
beforeAll(async () => {
  film = await render('video', INPUT)
})
afterAll(() => rm(film.folder, { recursive: true }))

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
  // Baseline, which knows no other sampling than 4:2:0 at 8 bits.
  expect(boxAt(entry?.content.subarray(78) ?? Buffer.alloc(0), 'avcC')[1]).toBe(66)
})

test('every frame is where the tables say, and the key frames are those that are listed', () => {
  const table = boxAt(film.bytes, 'moov/trak/mdia/minf/stbl')
  const sizes = boxAt(table, 'stsz')
  const keys = boxAt(table, 'stss')
  const listed = Array.from({ length: keys.readUInt32BE(4) }, (_, index) => keys.readUInt32BE(8 + index * 4))
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

test('the encoder leaves no listeners on the process', () => {
  expect(['uncaughtException', 'unhandledRejection'].map((event) => process.listenerCount(event))).toEqual(
    listeners,
  )
})

test('the same input gives the same film', async () => {
  const again = await render('video', INPUT)
  expect(again.bytes.equals(film.bytes)).toBe(true)
  await rm(again.folder, { recursive: true })
})

test('an abort ends it at once with its reason, leaves nothing, and the next film is sound', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rushes-preview-'))
  const controller = new AbortController()
  const reason = new Error('enough')
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
  await expect(createPreviewEngine().render(job)).rejects.toBe(reason)
  expect(performance.now() - abortedAt).toBeLessThan(500)
  expect(await readdir(folder)).toEqual([])
  await expect(createPreviewEngine().render(job)).rejects.toBe(reason)
  await rm(folder, { recursive: true })
})

const hasFfprobe = spawnSync('ffprobe', ['-version']).status === 0
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

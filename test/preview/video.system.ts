/** Films at full length, decoded by other programs where they are installed. The smaller proofs: `video.test.ts`. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { findFfmpeg } from '../../src/preview/video/ffmpeg-encoder.js'
import { temporaryFolder } from '../support/service.js'
import { boxAt, boxesIn } from './support/boxes.js'
import { checkFilm } from './support/check-film.js'
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
const films = new Map<string, Rendered>()
beforeAll(async () => {
  for (const { searchPath } of ENCODERS) films.set(searchPath, await render('video', INPUT, [], searchPath))
})

function filmBy(searchPath: string): Rendered {
  const film = films.get(searchPath)
  if (film === undefined) throw new Error('it was not rendered')
  return film
}

const sortedUp = (values: readonly number[]) => [...values].sort((one, other) => one - other)

describe.each(ENCODERS)('with $name', ({ searchPath, profile }) => {
  test('five seconds of 720x720 are 120 frames, alone in the folder, and progress rises to 1', async () => {
    const { bytes, contentType, folder, progress } = filmBy(searchPath)
    expect(contentType).toBe('video/mp4')
    expect(await readdir(folder)).toEqual(['film.mp4'])
    checkFilm(bytes, { width: 720, height: 720, frames: 120, keyFrames: [1, 25, 49, 73, 97], profile })
    expect(progress.length).toBeGreaterThan(100)
    expect(progress).toEqual(sortedUp(progress))
    expect(progress.at(-1)).toBe(1)
  })

  test('the same input gives the same film', async () => {
    const again = await render('video', INPUT, [], searchPath)
    expect(again.bytes.equals(filmBy(searchPath).bytes)).toBe(true)
  })

  test.skipIf(!hasFfprobe)('ffprobe decodes every frame of it', () => {
    const fields = 'stream=codec_name,pix_fmt,width,height,avg_frame_rate,duration,nb_read_frames,color_space'
    const options = ['-v', 'error', '-count_frames', '-show_entries', fields, '-of', 'json']
    const path = join(filmBy(searchPath).folder, 'film.mp4')
    const [stream] = JSON.parse(execFileSync('ffprobe', [...options, path], { encoding: 'utf8' })).streams
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
      const said = await playInChromium(chromium ?? '', filmBy(searchPath).bytes)
      context.skip(said === 'cannot', 'built without H.264')
      expect(said).toEqual({ width: 720, height: 720, seconds: 5 })
    },
    60_000,
  )
})

test.skipIf(process.platform === 'win32')(
  'an ffmpeg that breaks halfway is passed over, and progress never goes back',
  async () => {
    const tools = temporaryFolder()
    await writeFile(join(tools, 'ffmpeg'), '#!/bin/sh\nhead -c 3000000 > /dev/null; exit 3\n')
    await chmod(join(tools, 'ffmpeg'), 0o755)
    const film = await render('video', INPUT, [], tools)
    expect(boxesIn(film.bytes).map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
    expect(film.progress).toEqual(sortedUp(film.progress))
  },
)

test('ten seconds are 240 frames, upright when they are asked to be', async () => {
  const { bytes } = await render('video', { ...INPUT, aspect_ratio: '9:16', duration: '10' })
  const keyFrames = Array.from({ length: 10 }, (_, second) => second * 24 + 1)
  checkFilm(bytes, { width: 720, height: 1280, frames: 240, keyFrames, profile: 66 })
})

test('another prompt is another film', async () => {
  const other = await render('video', { ...INPUT, prompt: 'a lighthouse at night' })
  const sizesOf = ({ bytes }: Rendered) => boxAt(bytes, 'moov/trak/mdia/minf/stbl/stsz')
  expect(sizesOf(other).equals(sizesOf(filmBy('')))).toBe(false)
})

test.skipIf(!hasX264)('both encoders draw the same film', () => {
  const [one, other] = [filmBy(''), filmBy(process.env.PATH ?? '')]
  const options = ['-v', 'error', '-i', join(one.folder, 'film.mp4'), '-i', join(other.folder, 'film.mp4')]
  const { stderr } = spawnSync('ffmpeg', [...options, '-lavfi', 'psnr', '-f', 'null', '-', '-v', 'info'], {
    encoding: 'utf8',
  })
  expect(Number(/average:([\d.]+)/.exec(stderr)?.[1])).toBeGreaterThan(34)
})

test('a picture of high quality has 3840 pixels on its longer side', async () => {
  const { bytes } = await render('image', { prompt: 'hills', aspect_ratio: '21:9', quality: 'high' })
  // Width and height in the header of a PNG.
  expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([3840, 1646])
})

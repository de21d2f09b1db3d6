/** Films at full length, decoded by other programs where they are installed. The smaller proofs: `video.test.ts`. */
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { describePages } from '../support/browser.js'
import { checkFilm } from './support/check-film.js'
import { type Rendered, render } from './support/job.js'

const INPUT = { prompt: 'a red fox crosses a forest', aspect_ratio: '1:1', resolution: '720p', duration: '5' }
const hasFfprobe = spawnSync('ffprobe', ['-version']).status === 0

/** The film of `INPUT`, rendered once. */
let film: Rendered
beforeAll(async () => {
  film = await render('video', INPUT)
})

const sortedUp = (values: readonly number[]) => [...values].sort((one, other) => one - other)

test('a film of five seconds has 120 frames, is the only file in the folder, and its progress rises to 1', async () => {
  const { bytes, contentType, folder, progress } = film
  expect(contentType).toBe('video/mp4')
  expect(await readdir(folder)).toEqual(['film.mp4'])
  checkFilm(bytes, { width: 720, height: 720, frames: 120, keyFrames: [1, 25, 49, 73, 97] })
  expect(progress.length).toBeGreaterThan(100)
  expect(progress).toEqual(sortedUp(progress))
  expect(progress.at(-1)).toBe(1)
})

test.skipIf(!hasFfprobe)('ffprobe decodes every frame of a film', () => {
  const fields = 'stream=codec_name,pix_fmt,width,height,avg_frame_rate,duration,nb_read_frames,color_space'
  const options = ['-v', 'error', '-count_frames', '-show_entries', fields, '-of', 'json']
  const path = join(film.folder, 'film.mp4')
  const [stream] = JSON.parse(execFileSync('ffprobe', [...options, path], { encoding: 'utf8' })).streams
  expect(stream).toEqual({
    codec_name: 'h264',
    pix_fmt: 'yuv420p',
    width: 720,
    height: 720,
    avg_frame_rate: '24/1',
    duration: '5.000000',
    nb_read_frames: '120',
    color_space: 'smpte170m',
  })
})

describePages('a film in Chromium', (pages) => {
  test('shows its last frame', async (context) => {
    const path = join(film.folder, 'film.html')
    writeFileSync(path, '<!doctype html><video muted></video>')
    const { page } = await pages.open(pathToFileURL(path).href)
    const shown = await page.evaluate(`new Promise((resolve, reject) => {
      const film = document.querySelector('video')
      if (film.canPlayType('video/mp4; codecs="avc1.640028"') === '') resolve('cannot')
      film.onerror = () => reject(new Error(film.error.message))
      film.onloadeddata = () => { film.currentTime = film.duration - 1 / 48 }
      film.onseeked = () => resolve({ width: film.videoWidth, height: film.videoHeight, seconds: film.duration })
      film.src = 'film.mp4'
    })`)
    context.skip(shown === 'cannot', 'built without H.264')
    expect(shown).toEqual({ width: 720, height: 720, seconds: 5 })
  })
})

/** The parts of a film, each at the smallest size that proves it. Films at full length: `video.system.ts`. */
import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { writeOutput } from '../../src/preview/files.js'
import { copyInto, openEncoder, planShots } from '../../src/preview/film.js'
import { createPreviewEngine } from '../../src/preview/index.js'
import { layOut } from '../../src/preview/picture.js'
import { temporaryFolder } from '../support/index.js'
import { checkFilm } from './support/check-film.js'
import { referenceFiles } from './support/job.js'
import { plainPicture } from './support/pictures.js'

const INPUT = { prompt: 'a red fox crosses a forest', aspect_ratio: '1:1', resolution: '720p', duration: '5' }
const SIZE = { width: 64, height: 48 }

/** A film of frames that grow lighter. */
async function filmOf(frames: number): Promise<Buffer> {
  const encoder = await openEncoder(SIZE)
  const frame = new Uint8Array(SIZE.width * SIZE.height * 4)
  for (let at = 0; at < frames; at++) encoder.add(frame.fill(100 + at))
  return encoder.finish()
}

test('a film has moov before mdat, tables that match its frames and no clock, and the same bytes each time', async () => {
  const [film, again] = await Promise.all([filmOf(30), filmOf(30)])
  checkFilm(film, { ...SIZE, frames: 30, keyFrames: [1, 25] })
  expect(again.equals(film)).toBe(true)
})

const render = (folder: string, stop: AbortController, onProgress = () => {}) =>
  createPreviewEngine().render({
    kind: 'video',
    input: INPUT,
    folder,
    references: [],
    signal: stop.signal,
    onProgress,
  })

test('an abort ends a film at its first frame with the reason and leaves no file', async () => {
  const folder = temporaryFolder()
  const stop = new AbortController()
  const reason = new Error('enough')
  let frames = 0
  const abort = () => {
    frames++
    stop.abort(reason)
  }
  await expect(render(folder, stop, abort)).rejects.toBe(reason)
  await expect(render(folder, stop, abort)).rejects.toBe(reason)
  expect(frames).toBe(1)
  expect(await readdir(folder)).toEqual([])
})

test('an abort before the file is complete rejects with the reason and leaves no part of it', async () => {
  const folder = temporaryFolder()
  const reason = new Error('enough')
  const job = { kind: 'video', input: {}, references: [], folder, signal: AbortSignal.abort(reason) } as const
  await expect(writeOutput(job, 'film.mp4', 'video/mp4', Buffer.from('film'))).rejects.toBe(reason)
  expect(await readdir(folder)).toEqual([])
})

const FRAME = { width: 1280, height: 720 }

test('a film has shots of whole seconds, in which the camera never leaves the stage', () => {
  for (const size of [FRAME, { width: 1080, height: 1920 }]) {
    const shots = planShots('10', size)
    expect(shots.map(({ frames }) => frames)).toEqual([72, 48, 48, 72])
    for (const { step, frames, way } of shots) expect(step * (frames - 1)).toBe(way)
  }
})

test('a frame shows the part of the stage at its column, and an overlay covers only its place', () => {
  const rgba = (width: number, height: number, value: (column: number) => number) => ({
    width,
    height,
    data: Uint8Array.from({ length: width * height * 4 }, (_, at) => value(Math.floor(at / 4) % width)),
  })
  const frame = rgba(4, 2, () => 0)
  copyInto(
    frame,
    rgba(8, 2, (column) => column),
    -2,
    0,
  )
  copyInto(
    frame,
    rgba(2, 1, () => 9),
    2,
    1,
  )
  const red = frame.data.filter((_, at) => at % 4 === 0)
  expect([...red]).toEqual([2, 3, 4, 5, 2, 3, 9, 9])
})

// That the references lie whole and apart: references.test.ts.
test.each([FRAME, { width: 720, height: 1280 }])(
  'every reference and the card of a film lie in each frame of $width x $height, above the caption',
  async (size) => {
    const picture = await plainPicture('#ff00ff', 160, 90).png().toBuffer()
    const references = referenceFiles(Array.from({ length: 4 }, () => picture))
    const prompt = `a carpenter on a beach. ${'Seen from above. '.repeat(6_000)}`
    const layout = await layOut({ input: { prompt }, references }, size)
    const [caption, ...overlays] = layout.overlays
    const { stageHeight } = layout
    const { width, height } = size
    expect(stageHeight).toBeGreaterThan(height * 0.75)
    expect(caption).toMatchObject({ left: 0, top: stageHeight, width, height: height - stageHeight })
    expect(overlays).toHaveLength(references.length + 1)
    for (const overlay of overlays) {
      expect(Math.min(overlay.left, overlay.top)).toBeGreaterThanOrEqual(0)
      expect(overlay.left + overlay.width).toBeLessThanOrEqual(width)
      expect(overlay.top + overlay.height).toBeLessThanOrEqual(stageHeight)
    }
  },
)

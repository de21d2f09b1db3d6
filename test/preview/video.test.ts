/** The parts of a film, each at the smallest size that proves it. Films at full length: `video.system.ts`. */
import { readdirSync } from 'node:fs'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { writeOutput } from '../../src/preview/files.js'
import { createPreviewEngine } from '../../src/preview/index.js'
import { loadLettering } from '../../src/preview/lettering/caption.js'
import { drawShot } from '../../src/preview/picture.js'
import { openReferences } from '../../src/preview/references.js'
import type { Size } from '../../src/preview/render-request.js'
import { settingFor } from '../../src/preview/scenery/scene.js'
import { findFfmpeg } from '../../src/preview/terminal-picture.js'
import { type Encoder, openEncoder } from '../../src/preview/video/encoder.js'
import { planShots, windowAt } from '../../src/preview/video/film.js'
import { cutFrame, layerFromRgba, layOver } from '../../src/preview/video/frames.js'
import { fastStart, type Track } from '../../src/preview/video/mp4.js'
import { temporaryFolder } from '../support/service.js'
import { checkFilm } from './support/check-film.js'
import { referenceFiles } from './support/job.js'
import { plainPicture } from './support/pictures.js'

const INPUT = { prompt: 'a red fox crosses a forest', aspect_ratio: '1:1', resolution: '720p', duration: '5' }
const SIZE = { width: 64, height: 48 }

/** Frames that grow lighter, encoded. */
async function encode(encoder: Encoder, frames: number): Promise<Track> {
  try {
    for (let at = 0; at < frames; at++) encoder.add((await encoder.free()).fill(100 + at))
    return await encoder.finish()
  } finally {
    encoder.end()
  }
}

test('a film has moov before mdat, tables that match its frames and no clock, and the same bytes each time', async () => {
  const listeners = () =>
    ['uncaughtException', 'unhandledRejection', 'exit'].map((event) => process.listenerCount(event))
  const before = listeners()
  const make = async () => Buffer.concat(fastStart(await encode(openEncoder(SIZE), 30), SIZE, 24))
  const [film, again] = await Promise.all([make(), make()])
  checkFilm(film, { ...SIZE, frames: 30, keyFrames: [1, 25], profile: 66 })
  expect(again.equals(film)).toBe(true)
  expect(listeners()).toEqual(before)
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

test('an abort while the file is written rejects with the reason and leaves no part of it', async () => {
  const folder = temporaryFolder()
  const stop = new AbortController()
  const reason = new Error('enough')
  function* parts() {
    yield Buffer.from('begun')
    expect(readdirSync(folder)).toEqual(['.film.mp4.part'])
    stop.abort(reason)
    yield Buffer.from('too late')
  }
  const writing = writeOutput(
    folder,
    'film.mp4',
    parts() as Iterable<Uint8Array> as Uint8Array[],
    stop.signal,
  )
  await expect(writing).rejects.toBe(reason)
  expect(await readdir(folder)).toEqual([])
})

const FRAME = { width: 1280, height: 720 }

test.each([
  [5, 120, 3],
  [10, 240, 4],
] as const)(
  'a film of %i s has %i frames in at least %i shots, and each shot begins at a key frame',
  (seconds, frames, least) => {
    for (const prompt of ['a fox', 'a boat at dusk', 'x', '', 'neon city', 'dunes']) {
      const shots = planShots(prompt, seconds, 0, FRAME)
      expect(shots.reduce((sum, shot) => sum + shot.frames, 0)).toBe(frames)
      expect(shots.length).toBeGreaterThanOrEqual(least)
      for (const [index, shot] of shots.entries()) {
        expect(shot.frames % 24).toBe(0)
        expect(shot.movement).not.toBe(shots[index + 1]?.movement)
      }
    }
  },
)

test.each([1, 2, 3, 7, 14])('every one of %i references is in a film, and every shot shows one', (count) => {
  const shots = planShots('a fox', 5, count, FRAME)
  const seen = new Set(shots.flatMap(({ references }) => references))
  expect([...seen].sort((one, other) => one - other)).toEqual(
    Array.from({ length: count }, (_, index) => index),
  )
  for (const shot of shots) expect(shot.references.length).toBeGreaterThan(0)
})

test('the camera moves by whole even pixels and never leaves the stage', () => {
  for (const size of [FRAME, { width: 1080, height: 1920 }, { width: 2520, height: 1080 }]) {
    for (const shot of ['a', 'b', 'c', 'd'].flatMap((seed) => planShots(seed, 10, 0, size))) {
      for (let at = 0; at < shot.frames; at++) {
        const { left, top } = windowAt(shot, at)
        expect([left % 2, top % 2]).toEqual([0, 0])
        expect(Math.min(left, top)).toBe(0)
        expect(left + size.width).toBeLessThanOrEqual(shot.stage.width)
        expect(top + size.height).toBeLessThanOrEqual(shot.stage.height)
      }
    }
  }
})

const SMALL = { width: 8, height: 4 }
const layerOf = (size: Size, pixel: (column: number) => readonly number[]) => {
  const rgba = Array.from({ length: size.width * size.height }, (_, at) => pixel(at % size.width)).flat()
  return layerFromRgba(Uint8Array.from(rgba), size)
}

// BT.709 in limited range: the values of the standard's matrix.
test.each([
  ['white', [255, 255, 255], [235, 128, 128]],
  ['black', [0, 0, 0], [16, 128, 128]],
  ['red', [255, 0, 0], [63, 102, 240]],
  ['green', [0, 255, 0], [173, 42, 26]],
  ['blue', [0, 0, 255], [32, 240, 118]],
] as const)('a %s stage has the values of BT.709 in a frame', (_, rgb, expected) => {
  const frame = new Uint8Array(48)
  cutFrame(
    frame,
    SMALL,
    layerOf({ width: 12, height: 8 }, () => [...rgb, 255]),
    2,
    4,
  )
  const planes = [frame.subarray(0, 32), frame.subarray(32, 40), frame.subarray(40)]
  expect(planes.map((plane) => [...new Set(plane)])).toEqual(expected.map((value) => [value]))
})

test('a frame shows the part of the stage at its position', () => {
  const frame = new Uint8Array(48)
  cutFrame(
    frame,
    SMALL,
    layerOf({ width: 12, height: 4 }, (column) => [column * 20, column * 20, column * 20, 255]),
    4,
    0,
  )
  const expected = [4, 5, 6, 7, 8, 9, 10, 11].map((column) => 16 + (column * 20 * 219) / 255)
  for (const [at, value] of expected.entries())
    expect(Math.abs((frame[at] ?? 0) - value)).toBeLessThanOrEqual(1)
})

test('a caption covers a frame by its opacity: none, half or all', () => {
  for (const [alpha, luma] of [
    [0, 235],
    [128, 125],
    [255, 16],
  ] as const) {
    const frame = new Uint8Array(48)
    cutFrame(
      frame,
      SMALL,
      layerOf(SMALL, () => [255, 255, 255, 255]),
      0,
      0,
    )
    layOver(
      frame,
      layerOf(SMALL, () => [0, 0, 0, alpha]),
    )
    for (const value of frame.subarray(0, 32)) expect(Math.abs(value - luma)).toBeLessThanOrEqual(1)
    for (const value of frame.subarray(32)) expect(Math.abs(value - 128)).toBeLessThanOrEqual(1)
  }
})

test('ffmpeg is found only in absolute folders, and only if it is a program', async () => {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'ffmpeg'), '#!/bin/sh\n')
  await chmod(join(folder, 'ffmpeg'), 0o755)
  expect(findFfmpeg(['', '.', 'bin', folder].join(delimiter))).toBe(join(folder, 'ffmpeg'))
  await chmod(join(folder, 'ffmpeg'), 0o644)
  expect([folder, undefined, '/nowhere'].map((path) => findFfmpeg(path))).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

test('a film shows its whole reference in every frame of every shot', async () => {
  const size = { width: 320, height: 180 }
  const magenta = await plainPicture('#ff00ff', 160, 90).png().toBuffer()
  const references = await openReferences(referenceFiles([magenta]), size)
  const [setting, lettering] = [settingFor('a woman on a beach', 'run_1', true), await loadLettering()]
  for (const shot of planShots('a', 5, 1, { width: 1280, height: 720 })) {
    const way = { width: shot.stage.width / 4 - 320, height: shot.stage.height / 4 - 180 }
    const stage = { width: 320 + Math.round(way.width / 2) * 2, height: 180 + Math.round(way.height / 2) * 2 }
    const cut = { x: 1 - size.width / stage.width, y: 1 - size.height / stage.height }
    const { number, framing } = shot
    const picture = await drawShot(setting, lettering, { size: stage, number, framing, references, cut })
    const pixels = await picture.removeAlpha().raw().toBuffer()
    const isMagenta = (x: number, y: number) => pixels.readUIntBE((y * stage.width + x) * 3, 3) === 0xff00ff
    const [columns, rows] = [new Set<number>(), new Set<number>()]
    for (let y = 0; y < stage.height; y++)
      for (let x = 0; x < stage.width; x++)
        if (isMagenta(x, y)) {
          columns.add(x)
          rows.add(y)
        }
    expect(columns.size * rows.size).toBeGreaterThan(1000)
    // The camera shows these columns and rows from the first frame to the last.
    expect(Math.min(...columns)).toBeGreaterThanOrEqual(stage.width - size.width)
    expect(Math.max(...columns)).toBeLessThan(size.width)
    expect(Math.min(...rows)).toBeGreaterThanOrEqual(stage.height - size.height)
    expect(Math.max(...rows)).toBeLessThan(size.height)
  }
})

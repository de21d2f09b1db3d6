/** The parts of a film, each at the smallest size that proves it. Films at full length: `video.system.ts`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeOutput } from '../../src/preview/files.js'
import { createPreviewEngine } from '../../src/preview/index.js'
import { type Encoder, EncoderFailed, openWasmEncoder } from '../../src/preview/video/encoder.js'
import { findFfmpeg, openFfmpeg } from '../../src/preview/video/ffmpeg-encoder.js'
import { fastStart, type Track } from '../../src/preview/video/mp4.js'
import { temporaryFolder } from '../support/service.js'
import { checkFilm } from './support/check-film.js'

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

test('a film has moov before mdat, tables that fit its frames, and no clock, the same each time', async () => {
  const listeners = () =>
    ['uncaughtException', 'unhandledRejection', 'exit'].map((event) => process.listenerCount(event))
  const before = listeners()
  const make = async () => Buffer.concat(fastStart(await encode(openWasmEncoder(SIZE), 30), SIZE, 24))
  const [film, again] = await Promise.all([make(), make()])
  checkFilm(film, { ...SIZE, frames: 30, keyFrames: [1, 25], profile: 66 })
  expect(again.equals(film)).toBe(true)
  expect(listeners()).toEqual(before)
})

const render = (folder: string, searchPath: string, stop: AbortController, onProgress = () => {}) =>
  createPreviewEngine({ searchPath }).render({
    kind: 'video',
    input: INPUT,
    folder,
    references: [],
    signal: stop.signal,
    onProgress,
  })

test('an abort ends a film at its first frame with the reason, and leaves nothing', async () => {
  const folder = temporaryFolder()
  const stop = new AbortController()
  const reason = new Error('enough')
  let frames = 0
  const abort = () => {
    frames++
    stop.abort(reason)
  }
  await expect(render(folder, '', stop, abort)).rejects.toBe(reason)
  await expect(render(folder, '', stop, abort)).rejects.toBe(reason)
  expect(frames).toBe(1)
  expect(await readdir(folder)).toEqual([])
})

test('an abort while the file is written has its reason, and leaves no part of it', async () => {
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

const testPosix = test.skipIf(process.platform === 'win32')

/** A folder with a program of the name `ffmpeg`; `ffmpeg.pid` beside it will have its process id. */
async function folderWithFfmpeg(script: string): Promise<string> {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'ffmpeg'), `#!/bin/sh\necho $$ > "$0.pid"\n${script}\n`)
  await chmod(join(folder, 'ffmpeg'), 0o755)
  return folder
}

testPosix.each([
  ['lacks libx264', 'echo "Unknown encoder libx264" >&2; exit 1', 'ended with 1: Unknown encoder libx264'],
  ['reads all and writes nothing', 'cat > /dev/null', 'wrote no film'],
  ['is broken halfway', 'head -c 30000 > /dev/null; exit 3', 'ended with 3'],
])('an ffmpeg that %s fails as an encoder, so that another one is tried', async (_, script, words) => {
  const program = join(await folderWithFfmpeg(script), 'ffmpeg')
  const error = await encode(openFfmpeg(program, SIZE), 30).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(EncoderFailed)
  expect(error.message).toBe(`ffmpeg ${words}`)
})

testPosix('an abort ends the ffmpeg that was started', async () => {
  const tools = await folderWithFfmpeg('exec sleep 60')
  const stop = new AbortController()
  const refused = expect(render(temporaryFolder(), tools, stop)).rejects.toThrow('enough')
  const pidFile = join(tools, 'ffmpeg.pid')
  await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').trim()).toMatch(/\d/)
  const pid = Number(readFileSync(pidFile, 'utf8'))
  stop.abort(new Error('enough'))
  await refused
  await expect.poll(() => isAlive(pid)).toBe(false)
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('ffmpeg is looked for in absolute folders alone, and has to be a program', async () => {
  const folder = await folderWithFfmpeg('exit 0')
  expect(findFfmpeg(['', '.', 'bin', folder].join(':'))).toBe(join(folder, 'ffmpeg'))
  await chmod(join(folder, 'ffmpeg'), 0o644)
  expect(findFfmpeg(folder)).toBeUndefined()
  expect(findFfmpeg(undefined)).toBeUndefined()
  expect(findFfmpeg('/nowhere')).toBeUndefined()
})

// Renders a film. Each shot is one flat stage, drawn wider than the frame; the camera moves over it sideways by whole
// pixels. Memory use grows only by the encoded film (1 to 8 MB).
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { packagedFile, pixels, writeOutput } from './files.js'
import { drawStage, layOut } from './picture.js'
import { type Size, videoSize } from './size.js'

const FRAMES_PER_SECOND = 24

export async function renderVideo(job: RenderJob): Promise<RenderedFile> {
  const { input, signal, onProgress } = job
  const size = videoSize(input)
  const layout = await layOut(job, size)
  const sharp = await pixels()
  const overlays = await Promise.all(
    layout.overlays.map(async (overlay) => ({ ...overlay, ...(await rgbaOf(sharp(overlay.input))) })),
  )
  const shots = await Promise.all(
    planShots(input.duration, size).map(async (shot) => ({
      ...shot,
      stage: await rgbaOf(await drawStage(layout, shot, shot.way)),
    })),
  )
  const encoder = await openEncoder(size)
  const frame: Rgba = { ...size, data: new Uint8Array(size.width * size.height * 4) }
  const total = Number(input.duration) * FRAMES_PER_SECOND
  let done = 0
  for (const { stage, frames, step } of shots)
    for (let at = 0; at < frames; at++) {
      signal.throwIfAborted()
      copyInto(frame, stage, -step * at, 0)
      for (const overlay of overlays) copyInto(frame, overlay, overlay.left, overlay.top)
      encoder.add(frame.data)
      onProgress?.((++done / total) * 0.99)
      // Yield once per frame, so that messages and aborts are handled.
      await nextTurn()
    }
  return writeOutput(job, 'film.mp4', 'video/mp4', encoder.finish())
}

/** A picture with four bytes for each pixel, in rows. */
interface Rgba extends Size {
  readonly data: Uint8Array
}

async function rgbaOf(picture: Sharp): Promise<Rgba> {
  const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return { ...info, data }
}

/** Copies an opaque picture into a frame. A negative `left` shows a wider picture from there. */
export function copyInto(frame: Rgba, picture: Rgba, left: number, top: number): void {
  const shown = Math.min(frame.width, picture.width)
  for (let row = 0; row < picture.height; row++) {
    const from = row * picture.width + Math.max(0, -left)
    const to = (top + row) * frame.width + Math.max(0, left)
    frame.data.set(picture.data.subarray(from * 4, (from + shown) * 4), to * 4)
  }
}

const FRAMINGS = ['wide', 'middle', 'close', 'wide'] as const

/** Plans three shots (120 frames) for 5 s, and four shots (240 frames) for 10 s. */
export function planShots(duration: unknown, { width, height }: Size) {
  // Pixels from one frame to the next.
  const step = Math.min(width, height) > 1000 ? 4 : 2
  // Whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
  return (duration === '10' ? [3, 2, 2, 3] : [2, 1, 2]).map((seconds, index) => {
    const frames = seconds * FRAMES_PER_SECOND
    return { number: index + 1, framing: FRAMINGS[index] ?? 'wide', frames, step, way: step * (frames - 1) }
  })
}

// The encoder: h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform). The fastest setting looks the same on flat drawings as the default setting, which takes four times as long.
// Rejected: a worker thread, as composing a frame takes only 1 ms.
//
// Rejected in November 2026: a second encoder with the installed ffmpeg (the same pictures for 170 lines more),
// @napi-rs/webcodecs 1.4 (GPL inside), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts),
// @ffmpeg/core 0.12 (GPL, for browsers only), libav.js (no H.264 encoder), mediabunny and mp4-wasm (the browser encodes).

// From 10 (best) to 51. The drawings are flat and clean: 24 shows no blocks in the sky, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

/** Opens an encoder of frames in RGBA. `finish` returns the MP4 file. */
export async function openEncoder({ width, height }: Size) {
  const path = packagedFile('h264-mp4-encoder.cjs', 'h264-mp4-encoder')
  const { createH264MP4Encoder }: EncoderModule = createRequire(import.meta.url)(path)
  const encoder = await createH264MP4Encoder()
  // All encoders of a process share the files of one module.
  const outputFilename = `${randomUUID()}.mp4`
  const rate = { frameRate: FRAMES_PER_SECOND, groupOfPictures: FRAMES_PER_SECOND, speed: 10 }
  Object.assign(encoder, { width, height, outputFilename, ...rate, quantizationParameter: QUANTIZATION })
  encoder.initialize()
  return {
    add: (frame: Uint8Array): void => encoder.addFrameRgba(frame),
    finish(): Buffer {
      encoder.finalize()
      const film = fastStart(encoder.FS.readFile(outputFilename), FRAMES_PER_SECOND)
      encoder.FS.unlink(outputFilename)
      encoder.delete()
      return film
    },
  }
}

type EncoderModule = typeof import('h264-mp4-encoder', { with: { 'resolution-mode': 'require' }})

/**
 * Rewrites the encoder's MP4 file. `moov` comes first, so that playing can start during the download; it lists the key
 * frames (without them players show garbage after a seek), names the matrix of BT.601, which the frames use, and has no
 * time of day, so that the same frames give the same bytes. Rejected: mediabunny, which always
 * writes the time of day. The encoder made a key frame of every `interval`th frame, from the first.
 */
function fastStart(mp4: Uint8Array, interval: number): Buffer {
  const file = Buffer.from(mp4)
  const [type, data] = [boxAt(file, 'ftyp'), boxAt(file, 'mdat')]
  const samples = 'moov/trak/mdia/minf/stbl'
  const count = file.readUInt32BE(contentOf(file, 'stsz') + 8)
  const keyFrames = Array.from({ length: Math.ceil(count / interval) }, (_, at) => at * interval + 1)
  const stss = box('stss', numbers([0, keyFrames.length, ...keyFrames]))
  const colr = box('colr', Buffer.from('nclx\0\x01\0\x01\0\x06\0'))
  const described = append(boxAt(file, 'moov'), `${samples}/stsd/avc1`, colr)
  const movie = append(described, samples, stss)
  for (const name of ['mvhd', 'tkhd', 'mdhd'])
    movie.fill(0, contentOf(movie, name) + 4, contentOf(movie, name) + 12)
  const [offsets, shift] = [contentOf(movie, 'stco'), type.length + movie.length - file.indexOf(data)]
  for (let at = offsets + 8, left = movie.readUInt32BE(offsets + 4); left > 0; at += 4, left--)
    movie.writeUInt32BE(movie.readUInt32BE(at) + shift, at)
  return Buffer.concat([type, movie, data])
}

/** Returns where the content of the first box with this name begins. Tables of numbers come after all names. */
const contentOf = (bytes: Buffer, name: string): number => bytes.indexOf(name, 0, 'latin1') + 4

function boxAt(bytes: Buffer, name: string): Buffer {
  const start = contentOf(bytes, name) - 8
  return bytes.subarray(start, start + bytes.readUInt32BE(start))
}

/** Adds a box at the end of the last one of a path, all of which grow. */
function append(movie: Buffer, path: string, added: Buffer): Buffer {
  const starts = path.split('/').map((name) => contentOf(movie, name) - 8)
  const end = Math.max(...starts) + movie.readUInt32BE(Math.max(...starts))
  for (const start of starts) movie.writeUInt32BE(movie.readUInt32BE(start) + added.length, start)
  return Buffer.concat([movie.subarray(0, end), added, movie.subarray(end)])
}

/** Returns a box that contains the parts. */
function box(name: string, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([numbers([content.length + 8]), Buffer.from(name, 'latin1'), content])
}

/** Returns 32-bit big-endian numbers. */
const numbers = (values: readonly number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer).swap32()

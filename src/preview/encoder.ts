// Encodes a film: h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform). The fastest setting looks the same on flat drawings as the default setting, which takes four times as long.
// Rejected: a worker thread, as composing a frame takes only 1 ms.
//
// Rejected in November 2026: a second encoder with the installed ffmpeg (the same pictures for 170 lines more),
// @napi-rs/webcodecs 1.4 (GPL inside), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts),
// @ffmpeg/core 0.12 (GPL, for browsers only), libav.js (no H.264 encoder), mediabunny and mp4-wasm (the browser encodes).
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { packagedFile } from './files.js'
import type { Size } from './size.js'

export const FRAMES_PER_SECOND = 24
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
    finish(title: string): Buffer {
      encoder.finalize()
      const film = fastStart(encoder.FS.readFile(outputFilename), FRAMES_PER_SECOND, title)
      encoder.FS.unlink(outputFilename)
      encoder.delete()
      return film
    },
  }
}

type EncoderModule = typeof import('h264-mp4-encoder', { with: { 'resolution-mode': 'require' }})

/**
 * Rewrites the encoder's MP4 file. `moov` comes first, so that playing can start during the download; it lists the key
 * frames (without them players show garbage after a seek), names the matrix of BT.601, which the frames use, and has the
 * prompt as title and no time of day, so that the same frames give the same bytes. Rejected: mediabunny, which always
 * writes the time of day. The encoder made a key frame of every `interval`th frame, from the first.
 */
function fastStart(mp4: Uint8Array, interval: number, title: string): Buffer {
  const file = Buffer.from(mp4)
  const [type, data] = [boxAt(file, 'ftyp'), boxAt(file, 'mdat')]
  const samples = 'moov/trak/mdia/minf/stbl'
  const count = file.readUInt32BE(contentOf(file, 'stsz') + 8)
  const keyFrames = Array.from({ length: Math.ceil(count / interval) }, (_, at) => at * interval + 1)
  // QuickTime's title: its length in 16 bits, no language, and UTF-8.
  const text = Buffer.from(title)
  const stss = box('stss', numbers([0, keyFrames.length, ...keyFrames]))
  const udta = box('udta', box('\xa9nam', numbers([text.length << 16]), text))
  const colr = box('colr', Buffer.from('nclx\0\x01\0\x01\0\x06\0'))
  const described = append(boxAt(file, 'moov'), `${samples}/stsd/avc1`, colr)
  const movie = append(append(described, samples, stss), 'moov', udta)
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

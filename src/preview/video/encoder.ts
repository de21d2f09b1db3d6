// The encoder: h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform). The fastest setting takes 11 ms a frame at 720p and 27 ms at 1080p, and looks the same on flat drawings as the
// default setting, which takes 108 ms. Rejected: a worker thread, as composing a frame takes only 1 ms.
//
// Rejected in November 2026: a second encoder with the installed ffmpeg (the same pictures for 170 lines more),
// @napi-rs/webcodecs 1.4 (GPL inside), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts),
// @ffmpeg/core 0.12 (GPL, for browsers only), libav.js (no H.264 encoder), mediabunny and mp4-wasm (the browser encodes).
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { packagedFile } from '../files.js'
import type { Size } from '../render-request.js'
import { findBox, type Track } from './mp4.js'

export const FRAMES_PER_SECOND = 24
// From 10 (best) to 51. The drawings are flat and clean: 24 shows no blocks in the sky, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

export interface Encoder {
  /** Encodes a frame in I420. */
  add(frame: Uint8Array): void
  finish(): Track
}

export async function openEncoder({ width, height }: Size): Promise<Encoder> {
  const encoder = await loadModule().createH264MP4Encoder()
  // All encoders of a process share the files of one module.
  const outputFilename = `${randomUUID()}.mp4`
  const rate = { frameRate: FRAMES_PER_SECOND, groupOfPictures: FRAMES_PER_SECOND, speed: 10 }
  Object.assign(encoder, { width, height, outputFilename, ...rate, quantizationParameter: QUANTIZATION })
  encoder.initialize()
  return {
    add: (frame) => encoder.addFrameYuv(frame),
    finish() {
      encoder.finalize()
      const track = readTrack(encoder.FS.readFile(outputFilename))
      encoder.FS.unlink(outputFilename)
      encoder.delete()
      return track
    },
  }
}

type EncoderModule = typeof import('h264-mp4-encoder', { with: { 'resolution-mode': 'require' }})

/** Loads the module without its listeners, which end the process after any unhandled rejection. */
function loadModule(): EncoderModule {
  const events = ['uncaughtException', 'unhandledRejection'] as const
  const before = events.map((event) => process.rawListeners(event))
  const path = packagedFile('h264-mp4-encoder.cjs', 'h264-mp4-encoder')
  const loaded: EncoderModule = createRequire(import.meta.url)(path)
  for (const [index, event] of events.entries())
    for (const listener of process.rawListeners(event))
      if (!before[index]?.includes(listener)) process.off(event, listener as () => void)
  return loaded
}

const IDR_SLICE = 5
// Length in bytes of the fixed part of `stsd`, and of its `avc1` entry, before the boxes that they contain.
const DESCRIPTION_HEADER = 8
const ENTRY_HEADER = 78

/**
 * Reads the frames from the encoder's file. The rest of its `moov` is not used: it comes after the data, lists no key
 * frames (so that players show garbage after a seek), declares no colour space, and contains the time of day. Throws
 * when the file is not in the format of h264-mp4-encoder 1.0.12.
 */
function readTrack(mp4: Uint8Array): Track {
  const table = findBox(mp4, 'moov/trak/mdia/minf/stbl')
  const data = findBox(mp4, 'mdat')
  const description = table && findBox(table, 'stsd')
  const entry = description && findBox(description.subarray(DESCRIPTION_HEADER), 'avc1')
  const parameters = entry && findBox(entry.subarray(ENTRY_HEADER), 'avcC')
  const sizeTable = table && findBox(table, 'stsz')
  if (data === undefined || parameters === undefined || sizeTable === undefined) {
    throw new Error('the encoder wrote an MP4 without the boxes that are needed')
  }
  const sizes = readSizes(sizeTable)
  if (sizes.reduce((sum, size) => sum + size, 0) !== data.length) {
    throw new Error('the encoder wrote an MP4 whose frames are not side by side')
  }
  return { parameters, data, sizes, keyFrames: findKeyFrames(data, sizes) }
}

function readSizes(table: Buffer): number[] {
  const same = table.readUInt32BE(4)
  const count = table.readUInt32BE(8)
  return Array.from({ length: count }, (_, index) => same || table.readUInt32BE(12 + index * 4))
}

function findKeyFrames(data: Buffer, sizes: readonly number[]): number[] {
  const keyFrames: number[] = []
  let start = 0
  for (const [index, size] of sizes.entries()) {
    for (let at = start; at + 4 < start + size; at += 4 + data.readUInt32BE(at)) {
      if (((data[at + 4] ?? 0) & 0x1f) === IDR_SLICE) {
        keyFrames.push(index + 1)
        break
      }
    }
    start += size
  }
  return keyFrames
}

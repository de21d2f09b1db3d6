// H.264 from h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform). Measured on two cores at speed 10: 11 ms a frame at 720p, 27 ms at 1080p; at the default speed 0 108 ms.
//
// Rejected: @napi-rs/webcodecs (66 MB of FFmpeg with x264 inside, so GPL in spite of its MIT; from 1.4 not on Node 20),
// node-av and @mmomtchev/ffmpeg (install scripts), @ffmpeg/core (GPL, and since 0.12 for browsers alone), ffmpeg-static
// (downloads at install), libav.js (its published variants have no H.264).
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Size } from '../sizes.js'
import type { Frame } from './compose.js'
import { FRAMES_PER_SECOND } from './shots.js'

export interface Encoder {
  add(frame: Frame): void
  /** The MP4 as the encoder writes it: `moov` last, no list of key frames, the wall clock inside. */
  finish(): Uint8Array
  /** Frees everything; to be called once, whatever happened. */
  release(): void
}

// 10 (best) to 51. Our pictures are flat and clean: 26 shows no blocks in the skies, at 1 to 4 Mbit/s.
const QUANTIZATION = 26

export async function createEncoder(size: Size): Promise<Encoder> {
  const { createH264MP4Encoder } = loadQuietly()
  const encoder = await createH264MP4Encoder()
  // All encoders of a process share one file system in memory.
  encoder.outputFilename = `${randomUUID()}.mp4`
  encoder.width = size.width
  encoder.height = size.height
  encoder.frameRate = FRAMES_PER_SECOND
  encoder.groupOfPictures = FRAMES_PER_SECOND
  encoder.quantizationParameter = QUANTIZATION
  encoder.speed = 10
  encoder.initialize()
  let finished = false
  const finish = () => {
    if (!finished) encoder.finalize()
    finished = true
  }
  return {
    add: (frame) => encoder.addFrameYuv(frame),
    finish() {
      finish()
      return encoder.FS.readFile(encoder.outputFilename)
    },
    release() {
      // Deleting an encoder that was not finalized leaves its file open.
      finish()
      encoder.FS.unlink(encoder.outputFilename)
      encoder.delete()
    },
  }
}

/**
 * Emscripten's loader adds listeners that end the whole process on any unhandled rejection: they are taken off again.
 * `require`, because importers disagree whether this CommonJS module (marked `__esModule`) has a default export.
 */
function loadQuietly(): typeof import('h264-mp4-encoder', { with: { 'resolution-mode': 'require' }}) {
  const events = ['uncaughtException', 'unhandledRejection'] as const
  const before = events.map((event) => new Set<unknown>(process.listeners(event as 'uncaughtException')))
  const module = createRequire(import.meta.url)('h264-mp4-encoder')
  for (const [index, event] of events.entries()) {
    for (const listener of process.listeners(event as 'uncaughtException')) {
      if (!before[index]?.has(listener)) process.removeListener(event, listener)
    }
  }
  return module
}

// The encoder: h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform). The fastest setting looks the same on flat drawings as the default setting, which takes four times as long.
// Rejected: a worker thread, as composing a frame takes only 1 ms.
//
// Rejected in November 2026: a second encoder with the installed ffmpeg (the same pictures for 170 lines more),
// @napi-rs/webcodecs 1.4 (GPL inside), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts),
// @ffmpeg/core 0.12 (GPL, for browsers only), libav.js (no H.264 encoder), mediabunny and mp4-wasm (the browser encodes).
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { packagedFile } from './files.js'
import { fastStart } from './mp4.js'
import type { Size } from './size.js'

export const FRAMES_PER_SECOND = 24
// From 10 (best) to 51. The drawings are flat and clean: 24 shows no blocks in the sky, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

/** Opens an encoder of frames in YUV, one plane after the other. `finish` returns the MP4 file. */
export async function openEncoder({ width, height }: Size) {
  const encoder = await loadModule().createH264MP4Encoder()
  // All encoders of a process share the files of one module.
  const outputFilename = `${randomUUID()}.mp4`
  const rate = { frameRate: FRAMES_PER_SECOND, groupOfPictures: FRAMES_PER_SECOND, speed: 10 }
  Object.assign(encoder, { width, height, outputFilename, ...rate, quantizationParameter: QUANTIZATION })
  encoder.initialize()
  return {
    add: (frame: Uint8Array): void => encoder.addFrameYuv(frame),
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

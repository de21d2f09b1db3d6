import { createRequire } from 'node:module'

/** Returns an MP4 with 64 × 32 pixels and 10 frames per second, which browsers can play. */
export async function tinyVideo(frames = 40): Promise<Uint8Array> {
  const { createH264MP4Encoder } = createRequire(import.meta.url)('h264-mp4-encoder')
  const encoder = await createH264MP4Encoder()
  Object.assign(encoder, { width: 64, height: 32, frameRate: 10 })
  encoder.initialize()
  for (let at = 0; at < frames; at++) encoder.addFrameRgba(new Uint8Array(64 * 32 * 4).fill(at * 6))
  encoder.finalize()
  const bytes: Uint8Array = encoder.FS.readFile(encoder.outputFilename)
  encoder.delete()
  return bytes
}

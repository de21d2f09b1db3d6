// The interface of the two encoders: the machine's ffmpeg with libx264 (ffmpeg-encoder.ts), and otherwise the bundled one
// (wasm-encoder.ts). Both run beside the composing and return a track, which mp4/faststart.ts writes.
//
// Rejected in November 2026:
// @napi-rs/webcodecs 1.4 (FFmpeg with x264 inside, so GPL in spite of its MIT; not on Node 20), node-av 6,
// node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts), @ffmpeg/core 0.12 (GPL, for browsers alone),
// @ffmpeg-installer (GPL, install script), libav.js (its published variants have no H.264 encoder), mediabunny, mp4-muxer and
// mp4-wasm (they write the file, the encoding is left to the browser).
import type { Frame } from './compose.js'
import type { Track } from './mp4/encoder-mp4.js'

export interface Encoder {
  /** A buffer to compose into, as soon as one is free; there are few, to limit memory. */
  free(): Promise<Frame>
  /** Encodes a frame that `free` returned. */
  add(frame: Frame): void
  finish(): Promise<Track>
  /** Stops the encoder; called once, also after a failure. */
  end(): void
}

/** The encoder failed, so another one may be tried. */
export class EncoderFailed extends Error {
  override readonly name = 'EncoderFailed'
}

/** One is composed, one is encoded, one waits between them. */
const FRAMES = 3

/** The frame buffers that composing and encoding share. */
export class FramePool {
  readonly frames: readonly Frame[]
  readonly #free: Frame[]
  readonly #waiting: { resolve(frame: Frame): void; reject(reason: unknown): void }[] = []
  #failure: unknown

  constructor(bytes: number) {
    // Shared, so that a worker sees them without a copy.
    this.frames = Array.from({ length: FRAMES }, () => new Uint8Array(new SharedArrayBuffer(bytes)))
    this.#free = [...this.frames]
  }

  take(): Promise<Frame> {
    const frame = this.#free.pop()
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (frame !== undefined) return Promise.resolve(frame)
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  giveBack(frame: Frame): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#free.push(frame)
    else waiting.resolve(frame)
  }

  fail(reason: unknown): void {
    this.#failure ??= reason
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure)
  }
}

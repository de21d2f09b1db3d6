// What a film's frames are given to. Two ways: an ffmpeg of the machine's own, where there is one with libx264 (ffmpeg.ts),
// and otherwise an encoder that comes with us (wasm.ts). Both work beside the drawing, each on a core of its own, and
// both end in the same parts of an MP4, which is written by mp4/faststart.ts.
//
// Looked for in November 2026 and rejected, for want of anything better kept that installs without a download:
// @napi-rs/webcodecs 1.4 (FFmpeg with x264 inside, so GPL in spite of its MIT; not on Node 20), node-av 6,
// node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts), @ffmpeg/core 0.12 (GPL, for browsers alone),
// @ffmpeg-installer (GPL, install script), libav.js (its published variants have no H.264 encoder), mediabunny, mp4-muxer and
// mp4-wasm (they write the file, the encoding is left to the browser).
import type { Frame } from './compose.js'
import type { Track } from './mp4/encoder-mp4.js'

export interface Encoder {
  /** A frame to draw into, as soon as one is free: there are few, so that memory does not grow with the film. */
  free(): Promise<Frame>
  /** Takes a frame that `free` gave. */
  add(frame: Frame): void
  finish(): Promise<Track>
  /** Ends everything at once; to be called once, whatever happened. */
  end(): void
}

/** The encoder is at fault and not the film: another one may be tried. */
export class EncoderFailed extends Error {
  override readonly name = 'EncoderFailed'
}

/** One is drawn, one is encoded, one lies ready between them. */
const FRAMES = 3

/** The frames that go round between drawing and encoding. */
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

// The interface of the two encoders: the installed ffmpeg with libx264 (ffmpeg-encoder.ts), or the bundled encoder
// (below). Both run in parallel to the composing and return a track, which mp4.ts writes.
//
// Rejected in November 2026: @napi-rs/webcodecs 1.4 (FFmpeg with x264 inside, so GPL in spite of its MIT; not on Node
// 20), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts), @ffmpeg/core 0.12 (GPL, for browsers
// only), @ffmpeg-installer (GPL, install script), libav.js (its published variants have no H.264 encoder), mediabunny,
// mp4-muxer and mp4-wasm (they only write the file; the browser has to encode).
import { Worker } from 'node:worker_threads'
import { packagedFile } from '../files.js'
import type { Size } from '../render-request.js'
import type { Frame } from './compose.js'
import { findBox, type Track } from './mp4.js'
import { FRAMES_PER_SECOND } from './shots.js'

export interface Encoder {
  /** Resolves with a free buffer to compose a frame into. The number of buffers is small, to limit memory use. */
  free(): Promise<Frame>
  /** Encodes a frame in a buffer from `free`. */
  add(frame: Frame): void
  finish(): Promise<Track>
  /** Stops the encoder. Called once, also after a failure. */
  end(): void
}

/** The encoder failed. Another encoder may still work. */
export class EncoderFailed extends Error {
  override readonly name = 'EncoderFailed'
}

/** Number of buffers: one frame is composed, one waits, and one is encoded. */
const FRAMES = 3

/** Frame buffers that the composing and the encoder share. */
export class FramePool {
  readonly frames: readonly Frame[]
  readonly #free: Frame[]
  readonly #waiting: { resolve(frame: Frame): void; reject(reason: unknown): void }[] = []
  #failure: unknown

  constructor(bytes: number) {
    // Shared memory, so that a worker reads the frames without a copy.
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

// From 10 (best) to 51. The drawings are flat and clean: 24 shows no blocks in the sky, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

interface EncoderOptions {
  readonly script: string
  readonly frames: readonly Uint8Array[]
  readonly settings: Readonly<Record<string, number>>
}

type WorkerMessage = { readonly frame: number } | { readonly film: Uint8Array } | { readonly error: string }

/**
 * Runs h264-mp4-encoder 1.0.12 in a worker thread (minih264 and mp4v2 in WASM, MIT; one file, no install script, the
 * same on every platform). The fastest setting takes 11 ms per frame at 720p and 27 ms at 1080p, and looks the same on
 * flat drawings as the default setting, which takes 108 ms.
 */
export function openWasmEncoder(size: Size): Encoder {
  const pool = new FramePool((size.width * size.height * 3) / 2)
  const options: EncoderOptions = {
    // Resolved here, because the worker is created from source text and would resolve from the working directory.
    script: packagedFile('h264-mp4-encoder.cjs', 'h264-mp4-encoder'),
    frames: pool.frames,
    settings: {
      width: size.width,
      height: size.height,
      frameRate: FRAMES_PER_SECOND,
      groupOfPictures: FRAMES_PER_SECOND,
      quantizationParameter: QUANTIZATION,
      speed: 10,
    },
  }
  // Source text, because a worker in a file would need a separate build entry, and could not run from the TypeScript
  // sources.
  const worker = new Worker(`(${encodeInWorker})(require)`, { eval: true, workerData: options, env: {} })
  const film = new Promise<Track>((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      if ('frame' in message) pool.giveBack(pool.frames[message.frame] as Uint8Array)
      else if ('film' in message) resolve(readTrack(message.film))
      else worker.emit('error', new Error(message.error))
    })
    worker.once('error', (error) => {
      reject(error)
      pool.fail(error)
    })
    worker.once('exit', () => reject(new EncoderFailed('the encoder has ended')))
  })
  film.catch(() => {})
  return {
    free: () => pool.take(),
    add: (frame) => worker.postMessage(pool.frames.indexOf(frame)),
    finish() {
      worker.postMessage('finish')
      return film
    },
    end: () => void worker.terminate(),
  }
}

/** Runs in the worker, so it must not use any variable from outside this function. */
function encodeInWorker(load: NodeJS.Require): void {
  const { parentPort, workerData } = load('node:worker_threads') as typeof import('node:worker_threads')
  const { script, frames, settings } = workerData as EncoderOptions
  const { createH264MP4Encoder } = load(script) as typeof import('h264-mp4-encoder', { with: {
    'resolution-mode': 'require',
  }})
  const ready = createH264MP4Encoder().then((encoder) => {
    Object.assign(encoder, settings)
    encoder.initialize()
    return encoder
  })
  parentPort?.on('message', async (command: number | 'finish') => {
    try {
      const encoder = await ready
      if (command === 'finish') {
        encoder.finalize()
        parentPort.postMessage({ film: encoder.FS.readFile(encoder.outputFilename) })
      } else {
        encoder.addFrameYuv(frames[command] as Uint8Array)
        parentPort.postMessage({ frame: command })
      }
    } catch (error) {
      parentPort.postMessage({ error: String(error) })
    }
  })
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

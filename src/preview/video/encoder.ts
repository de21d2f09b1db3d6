// The encoder: h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform) in a worker thread, while the next frames are composed. The fastest setting takes 11 ms a frame at 720p and
// 27 ms at 1080p, and looks the same on flat drawings as the default setting, which takes 108 ms.
//
// Rejected in November 2026: a second encoder with the installed ffmpeg (the same pictures for 170 lines more),
// @napi-rs/webcodecs 1.4 (GPL inside), node-av 6, node-webcodecs 1.3 and @mmomtchev/ffmpeg 2 (install scripts),
// @ffmpeg/core 0.12 (GPL, for browsers only), libav.js (no H.264 encoder), mediabunny and mp4-wasm (the browser encodes).
import { Worker } from 'node:worker_threads'
import { packagedFile } from '../files.js'
import type { Size } from '../render-request.js'
import { findBox, type Track } from './mp4.js'

export const FRAMES_PER_SECOND = 24
/** Number of buffers: one frame is composed, one waits, and one is encoded. */
const BUFFERS = 3
// From 10 (best) to 51. The drawings are flat and clean: 24 shows no blocks in the sky, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

export interface Encoder {
  /** Resolves with a free buffer to compose a frame into. The number of buffers is small, to limit memory use. */
  free(): Promise<Uint8Array>
  /** Encodes a frame in a buffer from `free`. */
  add(frame: Uint8Array): void
  finish(): Promise<Track>
  /** Stops the encoder. Called once, also after a failure. */
  end(): void
}

interface EncoderOptions {
  readonly script: string
  readonly frames: readonly Uint8Array[]
  readonly settings: Readonly<Record<string, number>>
}

type WorkerMessage = { readonly frame: number } | { readonly film: Uint8Array } | { readonly error: string }

export function openEncoder({ width, height }: Size): Encoder {
  // Shared memory, so that the worker reads the frames without a copy.
  const frames: readonly Uint8Array[] = Array.from(
    { length: BUFFERS },
    () => new Uint8Array(new SharedArrayBuffer((width * height * 3) / 2)),
  )
  const options: EncoderOptions = {
    // Resolved here, because the worker is created from source text and would resolve from the working directory.
    script: packagedFile('h264-mp4-encoder.cjs', 'h264-mp4-encoder'),
    frames,
    settings: {
      width,
      height,
      frameRate: FRAMES_PER_SECOND,
      groupOfPictures: FRAMES_PER_SECOND,
      quantizationParameter: QUANTIZATION,
      speed: 10,
    },
  }
  // Source text, because a worker in a file would need a separate build entry, and could not run from the TypeScript
  // sources.
  const worker = new Worker(`(${encodeInWorker})(require)`, { eval: true, workerData: options, env: {} })
  const free = [...frames]
  let onFree: (() => void) | undefined
  const film = new Promise<Track>((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      if ('film' in message) resolve(readTrack(message.film))
      else if ('error' in message) worker.emit('error', new Error(message.error))
      else {
        free.push(frames[message.frame] as Uint8Array)
        onFree?.()
      }
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the encoder has ended')))
  })
  film.catch(() => {})
  return {
    async free() {
      // The film rejects if the encoder fails while a buffer is awaited.
      if (free.length === 0) await Promise.race([film, new Promise<void>((resolve) => (onFree = resolve))])
      return free.pop() as Uint8Array
    },
    add: (frame) => worker.postMessage(frames.indexOf(frame)),
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

// H.264 from h264-mp4-encoder 1.0.12 (minih264 and mp4v2 in WASM, MIT; one file, no install script, the same on every
// platform), in a worker thread. At its fastest setting, which looks the same on flat pictures: 11 ms a frame at 720p, 27 ms
// at 1080p; at its default 108 ms.
import { Worker } from 'node:worker_threads'
import { packagedFile } from '../packaged-file.js'
import type { Size } from '../sizes.js'
import { type Encoder, EncoderFailed, FramePool } from './encoder.js'
import { readTrack, type Track } from './mp4/encoder-mp4.js'
import { FRAMES_PER_SECOND } from './shots.js'

// 10 (best) to 51. Our pictures are flat and clean: 24 shows no blocks in the skies, at 1 to 5 Mbit/s.
const QUANTIZATION = 24

interface Orders {
  readonly script: string
  readonly frames: readonly Uint8Array[]
  readonly settings: Readonly<Record<string, number>>
}

type Said = { readonly frame: number } | { readonly film: Uint8Array } | { readonly error: string }

export function openWasmEncoder(size: Size): Encoder {
  const pool = new FramePool((size.width * size.height * 3) / 2)
  const orders: Orders = {
    // Resolved here: the worker is created from source text and would resolve from the working directory.
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
  // As source text: a worker in a file would need its own build entry, and could not run from the sources.
  const worker = new Worker(`(${encodeInWorker})(require)`, { eval: true, workerData: orders, env: {} })
  const film = new Promise<Track>((resolve, reject) => {
    worker.on('message', (said: Said) => {
      if ('frame' in said) pool.giveBack(pool.frames[said.frame] as Uint8Array)
      else if ('film' in said) resolve(readTrack(said.film))
      else worker.emit('error', new Error(said.error))
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

/** Runs in the worker, so it must not use anything outside itself. */
function encodeInWorker(load: NodeJS.Require): void {
  const { parentPort, workerData } = load('node:worker_threads') as typeof import('node:worker_threads')
  const { script, frames, settings } = workerData as Orders
  const { createH264MP4Encoder } = load(script) as typeof import('h264-mp4-encoder', { with: {
    'resolution-mode': 'require',
  }})
  const ready = createH264MP4Encoder().then((encoder) => {
    Object.assign(encoder, settings)
    encoder.initialize()
    return encoder
  })
  parentPort?.on('message', async (order: number | 'finish') => {
    try {
      const encoder = await ready
      if (order === 'finish') {
        encoder.finalize()
        parentPort.postMessage({ film: encoder.FS.readFile(encoder.outputFilename) })
      } else {
        encoder.addFrameYuv(frames[order] as Uint8Array)
        parentPort.postMessage({ frame: order })
      }
    } catch (error) {
      parentPort.postMessage({ error: String(error) })
    }
  })
}

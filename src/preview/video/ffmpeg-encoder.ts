// H.264 from an ffmpeg of the machine's own, with libx264: raw frames in, the bare stream out. It is started by its full
// path and without a shell; the path is looked for in the absolute folders of PATH alone, since a relative one (or an
// empty one, which means the working directory) would run whatever lies in the folder that somebody happens to be in.
//
// Measured at 1080p on two cores: veryfast 12 ms a frame, faster 31 ms, medium 35 ms, for files of the same size.
import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Size } from '../sizes.js'
import { type Encoder, EncoderFailed, FramePool } from './encoder.js'
import { readStream } from './mp4/annex-b.js'
import { FRAMES_PER_SECOND } from './shots.js'

/** Longer than this no frame takes; whatever was started there is no ffmpeg, or hangs. */
const STALLED_MS = 20_000
const MAX_STDERR = 400

export function findFfmpeg(searchPath: string | undefined): string | undefined {
  const name = process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg'
  return (searchPath ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

export function openFfmpeg(program: string, size: Size): Encoder {
  const pool = new FramePool((size.width * size.height * 3) / 2)
  const { FFREPORT: _, ...env } = process.env
  const child = spawn(program, argumentsFor(size), {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    windowsHide: true,
    // Ctrl-C goes to everyone in a terminal's group; this one ends when its input does, also when we are killed.
    detached: process.platform !== 'win32',
  })
  const stream: Buffer[] = []
  let words = ''
  let stalled: NodeJS.Timeout | undefined
  const wait = () => {
    clearTimeout(stalled)
    stalled = setTimeout(() => child.kill('SIGKILL'), STALLED_MS)
  }
  const whole = new Promise<Buffer>((resolve, reject) => {
    const fail = (how: string) => {
      const error = new EncoderFailed(`ffmpeg ${how}${words === '' ? '' : `: ${words.trim()}`}`)
      reject(error)
      pool.fail(error)
    }
    child.once('error', (error) => fail(error.message))
    child.once('close', (code, signal) => {
      clearTimeout(stalled)
      if (code === 0) resolve(Buffer.concat(stream))
      else fail(`ended with ${signal ?? code}`)
    })
    // It is gone before it has read all: what is to be said comes with `close`.
    child.stdin.on('error', () => {})
    child.stdout.on('data', (bytes: Buffer) => void stream.push(bytes))
    child.stderr.setEncoding('utf8').on('data', (more: string) => {
      words = (words + more).slice(-MAX_STDERR)
    })
  })
  whole.catch(() => {})
  wait()
  return {
    free: () => pool.take(),
    add(frame) {
      wait()
      child.stdin.write(frame, () => pool.giveBack(frame))
    },
    async finish() {
      wait()
      child.stdin.end()
      const bytes = await whole
      try {
        return readStream(bytes)
      } catch (error) {
        throw new EncoderFailed('ffmpeg wrote no film', { cause: error })
      }
    },
    end() {
      clearTimeout(stalled)
      child.kill('SIGKILL')
    },
  }
}

function argumentsFor({ width, height }: Size): readonly string[] {
  const colours = 'bt709'
  return [
    ...['-hide_banner', '-v', 'error', '-nostdin'],
    ...['-f', 'rawvideo', '-pix_fmt', 'yuv420p', '-s', `${width}x${height}`, '-r', String(FRAMES_PER_SECOND)],
    ...['-i', 'pipe:0', '-an', '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '19', '-profile:v', 'high'],
    ...['-color_range', 'tv', '-colorspace', colours, '-color_primaries', colours, '-color_trc', colours],
    // No frames that point forward: then the order of the stream is the order of the film. Two threads always, since
    // what x264 writes depends on how many it has. An AUD before each frame says where it begins.
    ...['-bf', '0', '-threads', '2', '-x264-params'],
    `keyint=${FRAMES_PER_SECOND}:min-keyint=${FRAMES_PER_SECOND}:scenecut=0:aud=1`,
    ...['-f', 'h264', 'pipe:1'],
  ]
}

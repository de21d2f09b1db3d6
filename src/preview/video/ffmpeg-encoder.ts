// H.264 by the machine's ffmpeg with libx264: raw frames in, an Annex B stream out. Started by its full path and without a
// shell, from the absolute folders of PATH only: a relative or empty one would run a program from the working directory.
//
// Measured at 1080p on two cores: veryfast 12 ms a frame, faster 31 ms, medium 35 ms, for files of the same size.
import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Size } from '../sizes.js'
import { type Encoder, EncoderFailed, FramePool } from './encoder.js'
import { readStream } from './mp4/annex-b.js'
import { FRAMES_PER_SECOND } from './shots.js'

/** ffmpeg is killed when a frame takes longer. */
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
    // Not in the terminal's process group, so Ctrl-C does not reach it; it ends when its input does.
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
    // ffmpeg ended before it read everything; `close` reports it.
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
    // No B-frames, so that the stream is in display order. Always two threads, since x264's output depends on their
    // number. An AUD marks the beginning of each frame.
    ...['-bf', '0', '-threads', '2', '-x264-params'],
    `keyint=${FRAMES_PER_SECOND}:min-keyint=${FRAMES_PER_SECOND}:scenecut=0:aud=1`,
    ...['-f', 'h264', 'pipe:1'],
  ]
}

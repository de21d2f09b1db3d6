// Encodes H.264 with the installed ffmpeg and libx264, from raw frames to an Annex B stream. ffmpeg is started by its
// full path and without a shell. Only absolute folders of PATH are used: a relative or empty folder would run a program
// from the working directory.
//
// Measured at 1080p on two cores: `veryfast` takes 12 ms per frame, `faster` 31 ms and `medium` 35 ms. The files have
// the same size.
import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Size } from '../render-request.js'
import { type Encoder, EncoderFailed, FramePool } from './encoder.js'
import { numbers, shorts, type Track } from './mp4.js'
import { FRAMES_PER_SECOND } from './shots.js'

/** Time limit of one frame. ffmpeg is killed when a frame takes longer. */
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
    // Not in the terminal's process group, so Ctrl-C does not reach ffmpeg. ffmpeg ends when its input ends.
    detached: process.platform !== 'win32',
  })
  const stream: Buffer[] = []
  let stderrText = ''
  let stalled: NodeJS.Timeout | undefined
  const wait = () => {
    clearTimeout(stalled)
    stalled = setTimeout(() => child.kill('SIGKILL'), STALLED_MS)
  }
  const output = new Promise<Buffer>((resolve, reject) => {
    const fail = (how: string) => {
      const error = new EncoderFailed(`ffmpeg ${how}${stderrText === '' ? '' : `: ${stderrText.trim()}`}`)
      reject(error)
      pool.fail(error)
    }
    child.once('error', (error) => fail(error.message))
    child.once('close', (code, signal) => {
      clearTimeout(stalled)
      if (code === 0) resolve(Buffer.concat(stream))
      else fail(`ended with ${signal ?? code}`)
    })
    // ffmpeg ended before it read all frames. The `close` event reports this failure.
    child.stdin.on('error', () => {})
    child.stdout.on('data', (bytes: Buffer) => void stream.push(bytes))
    child.stderr.setEncoding('utf8').on('data', (more: string) => {
      stderrText = (stderrText + more).slice(-MAX_STDERR)
    })
  })
  output.catch(() => {})
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
      const bytes = await output
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
    // No B-frames, so that the stream is in display order. Always two threads, because x264's output depends on the
    // number of threads. An AUD marks the beginning of each frame.
    ...['-bf', '0', '-threads', '2', '-x264-params'],
    `keyint=${FRAMES_PER_SECOND}:min-keyint=${FRAMES_PER_SECOND}:scenecut=0:aud=1`,
    ...['-f', 'h264', 'pipe:1'],
  ]
}

const SLICE = 1
const IDR_SLICE = 5
const SEQUENCE_PARAMETERS = 7
const PICTURE_PARAMETERS = 8
const DELIMITER = 9
const HIGH_PROFILE = 100

/**
 * Reads the frames of a raw H.264 stream (ISO/IEC 14496-10, Annex B: units separated by 00 00 01). Every frame must
 * start with a delimiter (AUD). Throws when parameters are missing.
 */
function readStream(stream: Buffer): Track {
  let sequence: Buffer | undefined
  let picture: Buffer | undefined
  const data: Buffer[] = []
  const sizes: number[] = []
  const keyFrames: number[] = []
  for (const unit of unitsOf(stream)) {
    const type = (unit[0] ?? 0) & 0x1f
    if (type === SEQUENCE_PARAMETERS) sequence ??= unit
    else if (type === PICTURE_PARAMETERS) picture ??= unit
    else if (type === DELIMITER) sizes.push(0)
    else if (type === SLICE || type === IDR_SLICE) {
      data.push(numbers(unit.length), unit)
      sizes.push((sizes.pop() ?? 0) + unit.length + 4)
      if (type === IDR_SLICE && keyFrames.at(-1) !== sizes.length) keyFrames.push(sizes.length)
    }
  }
  if (sequence === undefined || picture === undefined) throw new Error('the encoder wrote no H.264')
  return { parameters: parameterBox(sequence, picture), data: Buffer.concat(data), sizes, keyFrames }
}

function* unitsOf(stream: Buffer): Generator<Buffer> {
  const separator = Buffer.from([0, 0, 1])
  let at = stream.indexOf(separator)
  while (at >= 0) {
    const next = stream.indexOf(separator, at + 3)
    let end = next < 0 ? stream.length : next
    // The separator may have a fourth zero byte, and zeros may follow a unit.
    while (end > at + 3 && stream[end - 1] === 0) end--
    yield stream.subarray(at + 3, end)
    at = next
  }
}

/** Returns the content of an `avcC` box (ISO/IEC 14496-15). */
function parameterBox(sequence: Buffer, picture: Buffer): Buffer {
  const [, profile = 0, compatibility = 0, level = 0] = sequence
  const eightBits = 0xf8
  const extension = profile === HIGH_PROFILE ? [0xfc | 1, eightBits, eightBits, 0] : []
  return Buffer.concat([
    Buffer.from([1, profile, compatibility, level, 0xff, 0xe1]),
    shorts(sequence.length),
    sequence,
    Buffer.from([1]),
    shorts(picture.length),
    picture,
    Buffer.from(extension),
  ])
}

// Draws a picture, or the first frame of a video, for a terminal. Both are untrusted, like reference images.
import { execFile } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { pixels } from './files.js'
import { openPicture } from './open-picture.js'
import { halfBlocks, iterm2Codes, kittyCodes } from './picture-codes.js'
import type { Size } from './size.js'

/** `half blocks`: each character is two pixels, one above the other, in two colours. */
export type Protocol = 'kitty' | 'iterm2' | 'half blocks'

/** The size is the maximum, in pixels. Smaller pictures are not enlarged. */
export interface PictureRequest extends Size {
  readonly path: string
  readonly isVideo: boolean
  readonly protocol: Protocol
  /** Whether half blocks have 24 bits of colour, else the nearest of 256 colours. */
  readonly isTrueColour: boolean
}

const MAX_BYTES = 64 * 1_048_576
const FFMPEG_LIMITS = {
  timeout: 20_000,
  maxBuffer: MAX_BYTES,
  killSignal: 'SIGKILL',
  encoding: 'buffer',
} as const

/** Returns the escape codes. Rejects with the reason in plain words. `searchPath`: PATH, for ffmpeg, which the signal ends. */
export async function drawPicture(request: PictureRequest, searchPath?: string, signal?: AbortSignal) {
  const { path, isVideo, protocol, isTrueColour, width, height } = request
  if (!isVideo && (await stat(path)).size > MAX_BYTES) throw new Error('it is larger than 64 MiB')
  const bytes = isVideo ? await firstFrame(request, searchPath, signal) : await readFile(path)
  const { picture } = await openPicture(bytes)
  const png = await picture
    .resize({ width, height, fit: 'inside', withoutEnlargement: true })
    .toColourspace('srgb')
    .png()
    .toBuffer()
    .catch((cause) => {
      throw new Error('the picture is corrupt', { cause })
    })
  if (protocol === 'kitty') return kittyCodes(png)
  if (protocol === 'iterm2') return iterm2Codes(png)
  const raw = (await pixels())(png).toColourspace('srgb').ensureAlpha().raw()
  const { data, info } = await raw.toBuffer({ resolveWithObject: true })
  return halfBlocks({ ...info, data }, isTrueColour)
}

/** Reads the first frame as a PNG of at most this size. */
async function firstFrame(
  request: PictureRequest,
  searchPath?: string,
  signal?: AbortSignal,
): Promise<Buffer> {
  const { path, width, height } = request
  const program = findFfmpeg(searchPath)
  if (program === undefined) throw new Error('its first frame needs ffmpeg on PATH')
  const before = '-hide_banner -v error -nostdin -max_pixels 64000000 -protocol_whitelist file -i'.split(' ')
  const scale = `scale=w='min(iw,${width})':h='min(ih,${height})':force_original_aspect_ratio=decrease`
  const after = `-frames:v 1 -an -vf ${scale} -f image2pipe -c:v png pipe:1`.split(' ')
  // With `file:`, a name with a colon is not read as a URL. A playlist can open no URLs either.
  const words = [...before, `file:${resolve(path)}`, ...after]
  const { stdout } = await promisify(execFile)(program, words, { ...FFMPEG_LIMITS, signal }).catch(
    (cause) => {
      throw new Error('ffmpeg cannot read it', { cause })
    },
  )
  return stdout
}

/** Finds ffmpeg. Skips relative and empty folders of PATH, which would run a program from the working directory. */
export const findFfmpeg = (searchPath = ''): string | undefined =>
  searchPath
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg'))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return statSync(path).isFile()
      } catch {
        return false
      }
    })

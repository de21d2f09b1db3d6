// Draws a picture, or the first frame of a video, for a terminal. Both are untrusted, like reference images. The escape codes
// contain only numbers and encoded pixels, so nothing in a picture reaches the terminal. They end below the picture, at the
// start of a line.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { openPicture, pixels } from './files.js'
import type { Size } from './size.js'

/** `half blocks`: each character is two pixels, one above the other, in two colours. */
export type Protocol = 'kitty' | 'iterm2' | 'half blocks'

/** The size is the maximum, in pixels. Smaller pictures are not enlarged. */
export interface PictureRequest extends Size {
  readonly path: string
  readonly isVideo: boolean
  readonly protocol: Protocol
}

const MAX_BYTES = 64 * 1_048_576

/** Returns the escape codes. Rejects with the reason in plain words. `searchPath`: PATH, for ffmpeg, which the signal ends. */
export async function drawPicture(request: PictureRequest, searchPath?: string, signal?: AbortSignal) {
  const { path, isVideo, protocol, width, height } = request
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
  if (protocol === 'iterm2')
    return `\u001b]1337;File=inline=1;size=${png.length}:${png.toString('base64')}\u0007\n`
  const plain = (await pixels())(png).flatten().toColourspace('srgb').raw()
  const { data, info } = await plain.toBuffer({ resolveWithObject: true })
  return halfBlocks({ ...info, data })
}

/** Reads the first frame as a PNG of at most this size. */
async function firstFrame(
  { path, width, height }: PictureRequest,
  searchPath?: string,
  signal?: AbortSignal,
): Promise<Buffer> {
  const program = findFfmpeg(searchPath)
  if (program === undefined) throw new Error('its first frame needs ffmpeg on PATH')
  const before = '-hide_banner -v error -nostdin -max_pixels 64000000 -protocol_whitelist file -i'.split(' ')
  const scale = `scale=w='min(iw,${width})':h='min(ih,${height})':force_original_aspect_ratio=decrease`
  const after = `-frames:v 1 -an -vf ${scale} -f image2pipe -c:v png pipe:1`.split(' ')
  const limits = { timeout: 20_000, maxBuffer: MAX_BYTES, killSignal: 'SIGKILL' } as const
  // With `file:`, a name with a colon is not read as a URL. A playlist can open no URLs either.
  const words = [...before, `file:${resolve(path)}`, ...after]
  const { stdout } = await promisify(execFile)(program, words, {
    ...limits,
    encoding: 'buffer',
    signal,
  }).catch((cause) => {
    throw new Error('ffmpeg cannot read it', { cause })
  })
  return stdout
}

/** Finds ffmpeg. Skips relative and empty folders of PATH, which would run a program from the working directory. */
export const findFfmpeg = (searchPath = ''): string | undefined =>
  searchPath
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg'))
    .find(existsSync)

/** Returns at most 4,096 characters of base64 a code. q=2: it never replies, for the shell would read that. */
function kittyCodes(png: Buffer): string {
  const chunks = png.toString('base64').match(/.{1,4096}/g) ?? []
  const codes = chunks.map((chunk, index) => {
    const first = index === 0 ? 'a=T,f=100,q=2,' : ''
    return `\u001b_G${first}m=${index === chunks.length - 1 ? 0 : 1};${chunk}\u001b\\`
  })
  return `${codes.join('')}\n`
}

/** `data`: three bytes for each pixel, in rows. Writes codes only where a colour changes. */
export function halfBlocks({ width, height, data }: Size & { readonly data: Uint8Array }): string {
  const colourAt = (x: number, y: number): string =>
    `8;2;${data.subarray(3 * (y * width + x), 3 * (y * width + x + 1)).join(';')}`
  let text = ''
  for (let y = 0; y < height; y += 2) {
    let last = ''
    for (let x = 0; x < width; x++) {
      const codes = `\u001b[3${colourAt(x, y)};4${y + 1 < height ? colourAt(x, y + 1) : 9}m`
      text += codes === last ? '▀' : `${codes}▀`
      last = codes
    }
    text += '\u001b[0m\n'
  }
  return text
}

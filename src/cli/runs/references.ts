/** Reference images: what `-i` accepts, and what is sent for it. */

import { readFileSync, statSync } from 'node:fs'
import { usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { imageTypeOf } from '../../protocol/image-signatures.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { isHttpUrl } from '../../protocol/parse.js'
import type { Stdin } from '../process/io.js'
import { linesOf, readStdin } from '../process/stdin.js'
import { isRunOutput } from './run-outputs.js'

export const referencesReadStdin = (sources: readonly string[]): readonly string[] =>
  sources.filter((source) => source === '-').map(() => '-i')

/** One entry of `image_urls` for each source; `-` may give several. Throws `usage`. */
export async function resolveReferences(
  sources: readonly string[],
  stdin: Stdin,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const resolved: string[] = []
  for (const source of sources) {
    if (source === '-') resolved.push(...(await readReferences(stdin, signal)))
    else resolved.push(resolveReference(source))
  }
  return resolved
}

/** An image, or sources, one per line. */
async function readReferences(stdin: Stdin, signal: AbortSignal): Promise<readonly string[]> {
  const bytes = await readStdin(stdin, 'the reference images', signal)
  const type = imageTypeOf(bytes)
  if (type !== undefined) return [dataUrl(bytes, type)]
  if (bytes.includes(0)) throw notAnImage('Standard input')
  return linesOf(bytes.toString('utf8')).map(resolveReference)
}

function resolveReference(source: string): string {
  if (/^https?:/i.test(source)) {
    if (isHttpUrl(source)) return source
    throw usageError(`"${source}" is not a valid image URL.`)
  }
  if (/^data:/i.test(source)) return source
  // Resolved later, when the service is known: see `run-outputs.ts`.
  if (isRunOutput(source)) return source
  const bytes = readImage(source)
  const type = imageTypeOf(bytes)
  if (type === undefined) throw notAnImage(source)
  return dataUrl(bytes, type)
}

function readImage(path: string): Buffer {
  try {
    const { size } = statSync(path)
    if (size > MAX_BODY_BYTES) throw tooLarge(`${path} has ${size} bytes`)
    return readFileSync(path)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(
      `${describeError(error, path)}.`,
      'Give an image as a path, an http(s) URL, a data: URL, run:<id> or -.',
    )
  }
}

const dataUrl = (bytes: Buffer, type: string): string => `data:${type};base64,${bytes.toString('base64')}`

const notAnImage = (what: string) =>
  usageError(
    `${what} is not a PNG, JPEG, WebP, GIF or AVIF image.`,
    'The content of the file decides, not its name.',
  )

export const tooLarge = (what: string) =>
  usageError(
    `${what}; the limit for a request body is ${MAX_BODY_BYTES / 1024 / 1024} MiB.`,
    'Use smaller reference images, or http(s) URLs.',
  )

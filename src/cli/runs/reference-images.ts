/** Reads the reference images of a run: URLs, files, outputs of earlier runs, and standard input. */
import { tooLarge } from '../../client/create.js'
import { usageError } from '../../errors.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl, imageProblem, imageSourceOf, imageTypeOf } from '../../protocol/media.js'
import { linesOf, readPath, readStdin, type Stdin } from '../process/io.js'

export const referencesReadStdin = (sources: readonly string[]): readonly string[] =>
  sources.filter((source) => source === '-').map(() => '-i')

/** Returns an entry of `image_urls` for each source. `-` may give several entries. Rejects with `usage`. */
export async function resolveReferences(
  sources: readonly string[],
  stdin: Stdin,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const resolved: string[] = []
  for (const source of sources) {
    if (source === '-') resolved.push(...(await readReferences(stdin, signal)))
    else resolved.push(await resolveReference(source, signal))
  }
  return resolved
}

/** Reads standard input, which contains one image, or one source per line. */
async function readReferences(stdin: Stdin, signal: AbortSignal): Promise<readonly string[]> {
  const bytes = await readStdin(stdin, 'the reference images', signal)
  const type = imageTypeOf(bytes)
  if (type !== undefined) return [dataUrl(bytes, type)]
  if (bytes.includes(0)) throw notAnImage('Standard input', bytes)
  const resolved: string[] = []
  for (const line of linesOf(bytes.toString('utf8'))) resolved.push(await resolveReference(line, signal))
  return resolved
}

async function resolveReference(source: string, signal: AbortSignal): Promise<string> {
  const form = imageSourceOf(source)
  if (form === 'invalid url') throw usageError(`"${source}" is not a valid image URL.`)
  // `run:` is resolved later, when the service is known: see `run-outputs.ts`.
  if (form === 'url' || form === 'data' || form === 'run') return source
  const bytes = await readImage(source, signal)
  const type = imageTypeOf(bytes)
  if (type === undefined) throw notAnImage(source, bytes)
  return dataUrl(bytes, type)
}

const readImage = (path: string, signal: AbortSignal): Promise<Buffer> =>
  readPath(path, {
    signal,
    hint: 'Give an image as a path, an http(s) URL, a data: URL, run:<id> or -.',
    check({ size }) {
      if (size > MAX_BODY_BYTES) throw tooLarge(`${path} has ${size} bytes`)
    },
  })

const notAnImage = (what: string, bytes: Uint8Array) =>
  usageError(`${what} ${imageProblem(bytes)}.`, 'The content of the file decides, not its name.')

/** The reference images of a run as bytes, from the data folder or from elsewhere. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DataFolders } from '../data-folders.js'
import { OUTPUTS_PATH, type StoredImage, type StoredInput, type StoredOutput } from '../stored-run.js'
import type { ReferenceFetch } from './reference-fetch.js'

export interface ReferenceLoader {
  /** In the order of `image_urls`; undefined where there is nothing to be had. Rejects with the signal's reason. */
  of(input: StoredInput, signal: AbortSignal): Promise<readonly (Uint8Array | undefined)[]>
}

export interface ReferenceLoaderOptions {
  readonly folders: Pick<DataFolders, 'inputs' | 'outputs'>
  readonly fetch: Pick<ReferenceFetch, 'get'>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
}

const MAX_IMAGE_BYTES = 64 * 1_048_576
/** Over all references of one run, however many there are: they stand in memory together. */
const MAX_RUN_BYTES = 256 * 1_048_576
const AT_ONCE = 4

export function createReferenceLoader({
  folders,
  fetch,
  findOutput,
}: ReferenceLoaderOptions): ReferenceLoader {
  async function bytesOf(
    source: string | StoredImage,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    if (typeof source !== 'string') return readIfThere(join(folders.inputs, source.sha256))
    if (!URL.canParse(source)) return undefined
    const url = new URL(source)
    const own = await ownOutput(url)
    if (own !== undefined) return readIfThere(join(folders.outputs, own.token, own.name))
    return await fetch.get(url, maxBytes, signal)
  }

  /** An output of this service is read where it lies, whatever address it had when its URL was given out. */
  async function ownOutput({ pathname }: URL): Promise<StoredOutput | undefined> {
    const [name = '', token = '', folder] = pathname.split('/').reverse()
    return `/${folder}` === OUTPUTS_PATH ? await findOutput(token, decoded(name)) : undefined
  }

  return {
    async of({ image_urls: sources }, signal) {
      if (!Array.isArray(sources)) return []
      const found: (Uint8Array | undefined)[] = new Array(sources.length).fill(undefined)
      let left = MAX_RUN_BYTES
      const waiting = sources.entries()
      const takeTurns = async () => {
        for (const [index, source] of waiting) {
          signal.throwIfAborted()
          const bytes = await bytesOf(source, Math.min(left, MAX_IMAGE_BYTES), signal)
          if (bytes === undefined || bytes.byteLength > left) continue
          left -= bytes.byteLength
          found[index] = bytes
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, takeTurns))
      return found
    },
  }
}

async function readIfThere(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path)
  } catch {
    return undefined
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

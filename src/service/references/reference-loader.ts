/** Loads the reference images of a run as bytes, from the service's own files or over the network. */
import { type FileStore, readStored } from '../files/contract.js'
import {
  OUTPUTS_PATH,
  outputKey,
  type StoredImage,
  type StoredInput,
  type StoredOutput,
} from '../stored-run.js'
import type { ReferenceFetch } from './reference-fetch.js'

export interface ReferenceLoader {
  /** In the order of `image_urls`; undefined for each that cannot be loaded. Rejects with the signal's reason. */
  load(input: StoredInput, signal: AbortSignal): Promise<readonly (Uint8Array | undefined)[]>
}

export interface ReferenceLoaderOptions {
  readonly inputs: Pick<FileStore, 'find'>
  readonly outputs: Pick<FileStore, 'find'>
  readonly fetch: Pick<ReferenceFetch, 'get'>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
}

const MAX_IMAGE_BYTES = 64 * 1_048_576
/** Of all references of one run: they are in memory at the same time. */
const MAX_RUN_BYTES = 256 * 1_048_576
const CONCURRENCY = 4

export function createReferenceLoader({
  inputs,
  outputs,
  fetch,
  findOutput,
}: ReferenceLoaderOptions): ReferenceLoader {
  async function bytesOf(
    source: string | StoredImage,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    if (typeof source !== 'string') return readStored(inputs, source.sha256, maxBytes)
    if (!URL.canParse(source)) return undefined
    const url = new URL(source)
    const output = await findOwnOutput(url)
    if (output !== undefined) return readStored(outputs, outputKey(output), maxBytes)
    return await fetch.get(url, maxBytes, signal)
  }

  /** By the path alone: the service may have had another host or port when it gave out the URL. */
  async function findOwnOutput({ pathname }: URL): Promise<StoredOutput | undefined> {
    const [name = '', token = '', folder] = pathname.split('/').reverse()
    return `/${folder}` === OUTPUTS_PATH ? await findOutput(token, decoded(name)) : undefined
  }

  return {
    async load({ image_urls: sources }, signal) {
      if (!Array.isArray(sources)) return []
      const loaded: (Uint8Array | undefined)[] = new Array(sources.length).fill(undefined)
      let left = MAX_RUN_BYTES
      const waiting = sources.entries()
      const loadNext = async () => {
        for (const [index, source] of waiting) {
          signal.throwIfAborted()
          const bytes = await bytesOf(source, Math.min(left, MAX_IMAGE_BYTES), signal)
          if (bytes === undefined || bytes.byteLength > left) continue
          left -= bytes.byteLength
          loaded[index] = bytes
        }
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, loadNext))
      return loaded
    },
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

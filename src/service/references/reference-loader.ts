/** Saves the media of a run's input as files, from the service's storage or over the network. */
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { raceAbort, withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { isSystemError } from '../../host/system-error.js'
import type { SentImage } from '../../protocol/media.js'
import { IMAGE_URLS, mediaSources } from '../../protocol/media-parameters.js'
import type { FileReader } from '../files/contract.js'
import { inputKey, outputKey, outputOfUrl, type StoredOutput, type StoredRun } from '../store/run.js'
import type { ReferenceFetch } from './reference-fetch.js'

type LoadedRun = Pick<StoredRun, 'id' | 'input'>

export interface ReferenceLoader {
  /**
   * Returns the paths of files in `folder`, in the order of the sources in the media parameters, whose names are `media`;
   * undefined for each that cannot be loaded. Rejects with the signal's reason, with `StorageUnavailable`, or with an error
   * of the folder's disk.
   */
  load(
    run: LoadedRun,
    folder: string,
    signal: AbortSignal,
    media?: readonly string[],
  ): Promise<readonly (string | undefined)[]>
}

interface ReferenceLoaderOptions {
  readonly files: FileReader
  readonly fetch: Pick<ReferenceFetch, 'get'>
  readonly clock: Clock
  readonly maxBytes?: typeof MAX_BYTES
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
}

const MEBIBYTE = 1_048_576
const MAX_BYTES = {
  ofImage: 64 * MEBIBYTE,
  /** Maximum size of all references together. */
  ofRun: 256 * MEBIBYTE,
}
/**
 * Time limit for all fetches of one run together. They run at the same time, so that a slow host does not delay the
 * others.
 */
const FETCH_LIMIT_MS = 30_000

type ReferenceSource = string | SentImage

export function createReferenceLoader({
  files: stored,
  fetch,
  clock,
  maxBytes = MAX_BYTES,
  findOutput,
}: ReferenceLoaderOptions): ReferenceLoader {
  /** Returns the stored file that a source names; undefined for a URL of another host. */
  async function ownFileOf(runId: string, source: ReferenceSource): Promise<OwnFile | undefined> {
    if (typeof source !== 'string')
      return { files: stored, key: inputKey(runId, source.sha256), bytes: source.bytes }
    const named = outputOfUrl(source)
    const output = named && (await findOutput(named.token, named.name))
    return output && { files: stored, key: outputKey(output), bytes: output.bytes }
  }

  return {
    async load({ id, input }, folder, signal, media = [IMAGE_URLS]) {
      const sources = mediaSources(input, media).map(({ value }) => value as ReferenceSource)
      const files: (string | undefined)[] = new Array(sources.length).fill(undefined)
      const room: Room = { ofImage: maxBytes.ofImage, left: maxBytes.ofRun }
      const pathAt = (index: number): string => join(folder, String(index + 1))
      const remote: { readonly index: number; readonly url: URL }[] = []
      const copies = allSettled(
        sources.map(async (source, index) => {
          const own = await ownFileOf(id, source)
          signal.throwIfAborted()
          if (own !== undefined) files[index] = await copyInto(pathAt(index), own, room)
          else if (URL.canParse(String(source))) remote.push({ index, url: new URL(String(source)) })
        }),
      )
      // A copy from a storage that does not respond cannot be stopped. Bytes that arrive later go into a folder that is
      // removed.
      await raceAbort(copies, signal)
      // Fetch last, so that a retry after a storage failure does not fetch the images again.
      const fetchAll = (limited: AbortSignal) =>
        allSettled(
          remote.map(async ({ index, url }) => {
            files[index] = await fetchInto(pathAt(index), () => fetch.get(url, limited), room)
          }),
        )
      const reason = () => new Error('the hosts took too long')
      await withTimeout(fetchAll, { timeoutMs: FETCH_LIMIT_MS, reason, clock, signal })
      signal.throwIfAborted()
      return files
    },
  }
}

interface OwnFile {
  readonly files: FileReader
  readonly key: string
  readonly bytes: number
}

/** Copies a stored file. Returns undefined if it is too large, missing, or of another size than recorded. */
async function copyInto(
  path: string,
  { files, key, bytes }: OwnFile,
  room: Room,
): Promise<string | undefined> {
  if (bytes > Math.min(room.ofImage, room.left)) return undefined
  room.left -= bytes
  const found = await files.find(key)
  return found?.bytes === bytes ? await save(() => found.read(), path) : undefined
}

/** Writes the bytes into a file. Removes the file if it is incomplete. Reads nothing if the file cannot be created. */
async function save(
  read: () => Promise<AsyncIterable<Uint8Array>>,
  path: string,
  take: (bytes: number) => void = () => {},
): Promise<string> {
  const file = await open(path, 'w', 0o600)
  let isComplete = false
  try {
    for await (const chunk of await read()) {
      take(chunk.byteLength)
      await file.appendFile(chunk)
    }
    isComplete = true
    return path
  } finally {
    await file.close()
    if (!isComplete) await rm(path, { force: true })
  }
}

/** What the references of one run may still have, in bytes. */
interface Room {
  readonly ofImage: number
  left: number
}

/** Fetches an image of unknown size. Returns undefined if it fails or does not fit. Throws errors of the folder's disk. */
async function fetchInto(
  path: string,
  get: () => Promise<AsyncIterable<Uint8Array> | undefined>,
  room: Room,
): Promise<string | undefined> {
  let taken = 0
  const take = (bytes: number) => {
    if (bytes > Math.min(room.ofImage - taken, room.left)) throw new Error('too large')
    room.left -= bytes
    taken += bytes
  }
  try {
    const chunks = await get()
    return chunks && (await save(async () => chunks, path, take))
  } catch (error) {
    room.left += taken
    // A network error is an `HttpFailure`.
    if (isSystemError(error)) throw error
    return undefined
  }
}

/** Waits until all promises have settled, so that none still writes, then rejects with the first error. */
async function allSettled(works: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works))
    if (outcome.status === 'rejected') throw outcome.reason
}

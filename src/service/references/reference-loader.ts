/** Saves the reference images of a run as files, from the service's storage or over the network. */
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { onAbort, raceAbort, withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { isSystemError } from '../../host/system-error.js'
import type { FileStore } from '../files/contract.js'
import {
  outputKey,
  outputOfUrl,
  type StoredImage,
  type StoredInput,
  type StoredOutput,
} from '../stored-run.js'
import type { ReferenceFetch } from './reference-fetch.js'

export interface ReferenceLoader {
  /**
   * Returns the paths of files in `folder`, in the order of `image_urls`; undefined for each image that cannot be
   * loaded. Rejects with the signal's reason, with `StorageUnavailable`, or with an error of the folder's disk.
   */
  load(input: StoredInput, folder: string, signal: AbortSignal): Promise<readonly (string | undefined)[]>
}

interface ReferenceLoaderOptions {
  readonly inputs: Pick<FileStore, 'find'>
  readonly outputs: Pick<FileStore, 'find'>
  readonly fetch: Pick<ReferenceFetch, 'get'>
  readonly clock: Pick<Clock, 'alarm'>
  readonly maxBytes?: typeof MAX_BYTES
  /** Returns the file key of a stored image. */
  findImage(sha256: string): Promise<string | undefined>
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

type ReferenceSource = string | StoredImage

export function createReferenceLoader({
  inputs,
  outputs,
  fetch,
  clock,
  maxBytes = MAX_BYTES,
  findImage,
  findOutput,
}: ReferenceLoaderOptions): ReferenceLoader {
  /** Returns the stored file that a source names; undefined for a URL of another host. */
  async function ownFileOf(source: ReferenceSource): Promise<OwnFile | undefined> {
    if (typeof source !== 'string') {
      const key = await findImage(source.sha256)
      return key === undefined ? undefined : { files: inputs, key, bytes: source.bytes }
    }
    const named = outputOfUrl(source)
    const output = named && (await findOutput(named.token, named.name))
    return output && { files: outputs, key: outputKey(output), bytes: output.bytes }
  }

  return {
    async load({ image_urls: sources }, folder, signal) {
      if (!Array.isArray(sources)) return []
      const files: (string | undefined)[] = new Array(sources.length).fill(undefined)
      const room = createRoom(maxBytes)
      const pathAt = (index: number): string => join(folder, String(index + 1))
      const remote: { readonly index: number; readonly url: URL }[] = []
      const copies = allSettled(
        (sources as readonly ReferenceSource[]).map(async (source, index) => {
          const own = await ownFileOf(source)
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
            files[index] = await room.share(index, limited, async (take, dropped) => {
              const chunks = await fetch.get(url, dropped)
              return chunks && (await save(async () => chunks, pathAt(index), take))
            })
          }),
        )
      const reason = () => new Error('the hosts took too long')
      await withTimeout(fetchAll, { timeoutMs: FETCH_LIMIT_MS, reason, clock, signal })
      signal.throwIfAborted()
      for (const index of room.dropped) {
        await rm(pathAt(index), { force: true })
        files[index] = undefined
      }
      return files
    },
  }
}

interface OwnFile {
  readonly files: Pick<FileStore, 'find'>
  readonly key: string
  readonly bytes: number
}

/** Copies a stored file. Returns undefined if it is too large, missing, or of another size than recorded. */
async function copyInto(
  path: string,
  { files, key, bytes }: OwnFile,
  room: Room,
): Promise<string | undefined> {
  if (!room.reserve(bytes)) return undefined
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

interface Room {
  /** Counts a file of this size. Returns false if it does not fit. */
  reserve(bytes: number): boolean
  /** Indexes of the images that failed or did not fit. */
  readonly dropped: ReadonlySet<number>
  /**
   * Runs one of several fetches of unknown sizes. Returns undefined if it fails. `take` counts bytes before they are
   * written; when they do not fit, the image with the highest `index` is dropped, so that the first ones stay, however
   * fast each host is.
   */
  share(
    index: number,
    signal: AbortSignal,
    work: (take: (bytes: number) => void, dropped: AbortSignal) => Promise<string | undefined>,
  ): Promise<string | undefined>
}

interface Share {
  readonly index: number
  readonly dropped: AbortController
  bytes: number
}

/** Limits the size of the references of one run. */
function createRoom({ ofImage, ofRun }: typeof MAX_BYTES): Room {
  const shares = new Set<Share>()
  const dropped = new Set<number>()
  let left = ofRun

  function drop(share: Share): void {
    shares.delete(share)
    dropped.add(share.index)
    left += share.bytes
    share.dropped.abort(new Error('too large'))
  }

  return {
    dropped,
    reserve(bytes) {
      if (bytes > Math.min(ofImage, left)) return false
      left -= bytes
      return true
    },
    async share(index, signal, work) {
      const own: Share = { index, dropped: new AbortController(), bytes: 0 }
      const removeListener = onAbort(signal, () => own.dropped.abort(signal.reason))
      shares.add(own)
      const take = (bytes: number) => {
        if (own.bytes + bytes > ofImage) drop(own)
        while (bytes > left && shares.has(own))
          drop([...shares].reduce((last, each) => (each.index > last.index ? each : last), own))
        own.dropped.signal.throwIfAborted()
        left -= bytes
        own.bytes += bytes
      }
      try {
        // A complete file stays counted, and can still be dropped.
        return await work(take, own.dropped.signal)
      } catch (error) {
        if (shares.has(own)) drop(own)
        // Throw errors of the folder's disk. A network error is an `HttpFailure`.
        if (isSystemError(error)) throw error
        return undefined
      } finally {
        removeListener()
      }
    },
  }
}

/** Waits until all promises have settled, so that none still writes, then rejects with the first error. */
async function allSettled(works: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works))
    if (outcome.status === 'rejected') throw outcome.reason
}

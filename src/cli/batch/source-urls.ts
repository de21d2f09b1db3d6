/**
 * Finds a URL for the output of another row: its URL while the service still has the file, else a data: URL of
 * the local file. Checks the URL just before it is sent, since it may expire while the batch runs.
 */
import { resolve } from 'node:path'
import { type Made, outputsOf } from '../../batch/lock/lock.js'
import type { RowReference, SentReference } from '../../batch/manifest/index.js'
import type { ApiClient } from '../../client/index.js'
import { RushesError, usageError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import { fileAsUrl, isAvailable, type OutputProbe } from '../runs/output-files.js'

interface SourceUrls {
  /** Remembers the URLs of a run that this batch has followed. */
  learn(state: RunState): void
  /**
   * Returns the URL of an output. Rejects with `usage` if neither the service nor the disk has the output, or with the
   * signal's reason.
   */
  urlOf(reference: Pick<RowReference, 'text' | 'source' | 'output'>): Promise<string>
}

export interface SourceUrlsOptions extends OutputProbe {
  readonly client: Pick<ApiClient, 'get'>
  /** Address of the service. */
  readonly address: string
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  madeOf(name: string): Made | undefined
}

type Urls = readonly string[]

export function createSourceUrls(options: SourceUrlsOptions): SourceUrls {
  const { client, address, folder, madeOf, signal } = options
  const known = new Map<string, Urls>()
  const requests = new Map<string, Promise<Urls>>()

  /** Sends one status request at a time for a run, and none for a run that the service does not know. */
  function fetchUrls(run: string): Promise<Urls> {
    const request = requests.get(run) ?? renew(run)
    requests.set(run, request)
    return request
  }

  async function renew(run: string): Promise<Urls> {
    let isGone = false
    try {
      const { urls } = await client.get(run, signal)
      known.set(run, urls)
      return urls
    } catch (error) {
      signal.throwIfAborted()
      isGone = error instanceof RushesError && error.code === 'run_not_found'
      return []
    } finally {
      if (!isGone) requests.delete(run)
    }
  }

  async function servedUrl({ run, service }: Made, at: number): Promise<string | undefined> {
    if (service !== address) return undefined
    const first = known.get(run)?.[at]
    if (await isAvailable(first, options)) return first
    // A status request renews URLs that have expired.
    const fresh = (await fetchUrls(run))[at]
    return fresh !== first && (await isAvailable(fresh, options)) ? fresh : undefined
  }

  return {
    learn: ({ id, urls }) => void known.set(id, urls),
    async urlOf({ text, source, output }) {
      const made = madeOf(source)
      const found = outputsOf(made)[output - 1]
      if (made === undefined || found === undefined)
        throw new Error('a row begins when its sources are there')
      const served = await servedUrl(made, output - 1)
      if (served !== undefined) return served
      const { file, sha256, content_type } = found
      const path = resolve(folder, file)
      const onDisk = await fileAsUrl({ path, file, reference: text, sha256, content_type })
      if ('url' in onDisk) return onDisk.url
      throw usageError(
        `${text}: the service does not have this output any more, and ${onDisk.why}.`,
        `Create it again with --only ${source} --force.`,
      )
    },
  }
}

/** Returns the data: URL of a local file. Throws `usage` if the file has changed since the plan was made. */
export async function fileUrl(
  { path, summary, place }: Extract<SentReference, { from: 'file' }>,
  name: string,
): Promise<string> {
  const reference = `${place.parameter} of ${name}`
  const { sha256, content_type } = summary
  const found = await fileAsUrl(
    { path, file: path, reference, sha256, content_type },
    'while the batch was running',
  )
  if ('url' in found) return found.url
  throw usageError(`${reference}: ${found.why}.`, 'Run the same command again.')
}

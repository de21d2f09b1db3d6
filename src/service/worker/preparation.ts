/**
 * The slots in which runs are rendered, and the references of a run. They are loaded before the run takes a slot, so that
 * a slow host or storage occupies none. Only a few runs of an account are prepared at once: its others stay queued, so
 * that the worker claims those of other accounts.
 *
 *   claimed ──▶ loads its references ──▶ waits for a slot ──▶ rendered
 *      └──────────────── has none ────────────────▲
 */
import { mkdir } from 'node:fs/promises'
import type { Clock } from '../../host/clock.js'
import { makeOwnFolder, type OwnFolder } from '../../host/own-folder.js'
import { createSlots, type ReleaseSlot } from '../../host/slots.js'
import { describeReason } from '../../host/system-error.js'
import type { RenderJob } from '../engines/engine.js'
import { StorageUnavailable, untilStorageAnswers } from '../files/contract.js'
import { isDiskUnusable } from '../log.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { StoredRun } from '../stored-run.js'

/** Runs that load references, or wait with them for a slot. With 256 MiB for each, they take at most 2 GiB of the disk. */
const MAX_LOADING = 8
/** Per account: only the slow hosts of four accounts together could delay the others, for 30 s. */
const MAX_PREPARED_OF_ACCOUNT = 2
/**
 * Includes the runs that wait to load: without a bound, this worker would claim runs that others could render. Beyond it,
 * runs without references wait for the slow hosts of others.
 */
const MAX_PREPARED = 16

export interface PreparationOptions {
  readonly references: ReferenceLoader
  readonly clock: Pick<Clock, 'sleep'>
  /** The parent of the folders with references. */
  readonly workFolder: string
  /** The maximum of concurrent renders. */
  readonly concurrency: number
  onError(error: unknown): void
  /** Called when a run leaves the preparation for a slot. */
  onPrepared(): void
}

export interface Preparation {
  /** Runs without a slot because of their references. */
  readonly size: number
  readonly isFull: boolean
  /** The accounts at `MAX_PREPARED_OF_ACCOUNT`. */
  readonly fullAccounts: readonly number[]
  /**
   * Does the work in a slot, with the references of the run, and removes them afterwards. Rejects with the signal's
   * reason when it is aborted before.
   */
  inSlot<Result>(
    run: StoredRun,
    signal: AbortSignal,
    work: (references: RenderJob['references']) => Promise<Result>,
  ): Promise<Result>
}

export function createPreparation(options: PreparationOptions): Preparation {
  const { references, clock, workFolder, concurrency, onError, onPrepared } = options
  const slots = createSlots(concurrency)
  const loading = createSlots(MAX_LOADING)
  const inPreparation = new Set<StoredRun>()

  async function load(
    { input }: StoredRun,
    { path }: OwnFolder,
    signal: AbortSignal,
  ): Promise<RenderJob['references']> {
    const attempt = () =>
      references.load(input, path, signal).catch((error) => {
        // A full disk and a locked database are retried like unavailable storage.
        throw isDiskUnusable(error) ? new StorageUnavailable(describeReason(error), { cause: error }) : error
      })
    return await untilStorageAnswers(attempt, { clock, signal, onError })
  }

  return {
    get size() {
      return inPreparation.size
    },
    get isFull() {
      return inPreparation.size >= MAX_PREPARED
    },
    get fullAccounts() {
      const accounts = [...inPreparation].map(({ accountId }) => accountId)
      return [...new Set(accounts)].filter(
        (account) => accounts.filter((each) => each === account).length >= MAX_PREPARED_OF_ACCOUNT,
      )
    },
    async inSlot(run, signal, work) {
      const releases: ReleaseSlot[] = []
      let folder: OwnFolder | undefined
      let files: RenderJob['references'] = []
      const { image_urls: sources } = run.input
      try {
        if (Array.isArray(sources) && sources.length > 0) {
          inPreparation.add(run)
          releases.push(await loading.take({ signal }))
          await mkdir(workFolder, { recursive: true, mode: 0o700 })
          folder = await makeOwnFolder(workFolder, `${run.id}-references-`)
          files = await load(run, folder, signal)
        }
        const [releaseLoading] = releases
        releases.push(await slots.take({ signal }))
        if (inPreparation.delete(run)) {
          releaseLoading?.()
          onPrepared()
        }
        return await work(files)
      } finally {
        inPreparation.delete(run)
        await folder?.remove().catch(onError)
        for (const release of releases) release()
      }
    },
  }
}

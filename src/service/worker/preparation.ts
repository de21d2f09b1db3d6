/**
 * The slots in which runs are rendered, and the references that a run needs before. They are loaded before the run takes a slot, so
 * that a slow host or storage takes none. Few runs of an account are in preparation: its others stay queued, so that those
 * of other accounts are claimed.
 *
 *   claimed ──▶ loads its references ──▶ waits for a slot ──▶ rendered
 *      └──────────────── has none ────────────────▲
 */
import { mkdir } from 'node:fs/promises'
import type { Clock } from '../../host/clock.js'
import { makeOwnFolder, type OwnFolder } from '../../host/own-folder.js'
import { describeReason } from '../../host/system-error.js'
import { isDiskUnusable } from '../disk-unusable.js'
import type { RenderJob } from '../engines/engine.js'
import { StorageUnavailable, untilStorageAnswers } from '../files/storage-unavailable.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { StoredRun } from '../stored-run.js'
import { createSlots, type ReleaseSlot } from './slots.js'

/** How many runs load references, or have them and wait for a slot. With 256 MiB for each, they take at most 2 GiB of the disk. */
const MAX_LOADING = 8
/** Of one account, so that slow hosts of four accounts are needed to keep others from loading, for 30 s. */
const MAX_PREPARED_OF_ACCOUNT = 2
/**
 * With those that wait to load: other workers could take them. Only beyond it do runs without references wait for slow hosts of
 * others.
 */
const MAX_PREPARED = 16

export interface PreparationOptions {
  readonly references: ReferenceLoader
  readonly clock: Pick<Clock, 'sleep'>
  /** References are put into folders of it. */
  readonly workFolder: string
  /** How many runs are rendered at once. */
  readonly concurrency: number
  onError(error: unknown): void
  /** A run has left the preparation for a slot. */
  onPrepared(): void
}

export interface Preparation {
  /** How many runs have no slot yet because of their references. */
  readonly size: number
  readonly isFull: boolean
  /** The accounts of which no other run is prepared at the moment. */
  readonly fullAccounts: readonly number[]
  /**
   * Does the work in a slot, with the references of the run, which are removed after it. Rejects with the signal's reason when that
   * is aborted before.
   */
  inSlot<Result>(
    run: StoredRun,
    signal: AbortSignal,
    work: (references: RenderJob['references']) => Promise<Result>,
  ): Promise<Result>
}

export function createPreparation(options: PreparationOptions): Preparation {
  const { references, clock, workFolder, concurrency, onError, onPrepared } = options
  const takeSlot = createSlots(concurrency)
  const takePlace = createSlots(MAX_LOADING)
  const inPreparation = new Set<StoredRun>()

  async function load(
    { input }: StoredRun,
    { path }: OwnFolder,
    signal: AbortSignal,
  ): Promise<RenderJob['references']> {
    const attempt = () =>
      references.load(input, path, signal).catch((error) => {
        // A full disk, or a database that is locked: waited for as the storage is.
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
      const held: ReleaseSlot[] = []
      let folder: OwnFolder | undefined
      let files: RenderJob['references'] = []
      const { image_urls: sources } = run.input
      try {
        if (Array.isArray(sources) && sources.length > 0) {
          inPreparation.add(run)
          held.push(await takePlace(signal))
          await mkdir(workFolder, { recursive: true, mode: 0o700 })
          folder = await makeOwnFolder(workFolder, `${run.id}-references-`)
          files = await load(run, folder, signal)
        }
        const [place] = held
        held.push(await takeSlot(signal))
        if (inPreparation.delete(run)) {
          place?.()
          onPrepared()
        }
        return await work(files)
      } finally {
        inPreparation.delete(run)
        await folder?.remove().catch(onError)
        for (const release of held) release()
      }
    },
  }
}

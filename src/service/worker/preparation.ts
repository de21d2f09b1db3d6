/**
 * Loads the references of a run, then waits for a render slot of its model and of the worker. References are loaded
 * before the run takes a slot, so that a slow host or slow storage does not block a slot. Only a few runs per account
 * and per model are prepared at once; the others stay queued, so that the worker can claim other runs. A model that a
 * server renders has only its own slots, so that a server that is loading or down stops no other model.
 *
 *   claimed ──▶ loads its references ──▶ waits for its slots ──▶ rendered
 *      └──────────────── has none ─────────────────▲
 */
import { mkdir } from 'node:fs/promises'
import type { Clock } from '../../host/clock.js'
import { makeOwnFolder, type OwnFolder } from '../../host/own-folder.js'
import { createSlots, type ReleaseSlot } from '../../host/slots.js'
import { describeReason } from '../../host/system-error.js'
import type { RenderJob } from '../engines/engine.js'
import { StorageUnavailable, untilStorageAnswers } from '../files/contract.js'
import { isDiskUnusable } from '../log.js'
import type { ServedModel } from '../models/served-model.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { StoredRun } from '../stored-run.js'

/** Maximum number of runs that load references at the same time. */
const MAX_LOADING = 8
/**
 * Maximum per account. Other accounts are delayed only if the hosts of at least four accounts are slow, and then by at
 * most 30 s.
 */
const MAX_PREPARED_OF_ACCOUNT = 2
/**
 * Maximum per model with its own `concurrency`. It is higher than for an account, so that no account with slow hosts
 * delays the model for others.
 */
const MAX_PREPARED_OF_MODEL = 3
/**
 * Maximum number of prepared runs, including runs that wait to load. Without this limit, the worker would claim runs
 * that other workers could render. At 256 MiB per run, they use at most 4 GiB of disk space. At the limit, the worker
 * claims no runs, not even runs without references, until a prepared run gets a slot or fails.
 */
const MAX_PREPARED = 16

export interface PreparationOptions {
  readonly models: readonly ServedModel[]
  readonly references: ReferenceLoader
  readonly clock: Pick<Clock, 'sleep'>
  /** Parent of the reference folders. */
  readonly workFolder: string
  /** Maximum number of concurrent renders, and of those of each model that a server renders. */
  readonly concurrency: number
  onError(error: unknown): void
  /** Called when a prepared run gets a slot. */
  onPrepared(): void
}

export interface Preparation {
  /** Accounts that have reached `MAX_PREPARED_OF_ACCOUNT`. */
  readonly fullAccounts: readonly number[]
  /** Whether a run of the model may be claimed, if `claimed` are the runs of the worker. */
  mayClaim(model: ServedModel, claimed: readonly StoredRun[]): boolean
  /**
   * Runs `work` in a slot with the loaded references, then deletes the references. Rejects with the signal's reason if
   * the signal is aborted before `work` starts.
   */
  inSlot<Result>(
    run: StoredRun,
    signal: AbortSignal,
    work: (references: RenderJob['references']) => Promise<Result>,
  ): Promise<Result>
}

export function createPreparation(options: PreparationOptions): Preparation {
  const { references, models, clock, workFolder, concurrency, onError, onPrepared } = options
  const slots = createSlots(concurrency)
  const limitOf = ({ concurrency: ofModel, isRemote }: ServedModel): number =>
    ofModel ?? (isRemote ? concurrency : Number.POSITIVE_INFINITY)
  const slotsOfModels = new Map(
    models.map((model) => {
      const own = limitOf(model) === Number.POSITIVE_INFINITY ? [] : [createSlots(limitOf(model))]
      return [model.document.name, model.isRemote ? own : [...own, slots]]
    }),
  )
  const slotsOf = ({ model }: StoredRun) => slotsOfModels.get(model) ?? [slots]
  const loading = createSlots(MAX_LOADING)
  const inPreparation = new Set<StoredRun>()

  async function load(
    { input }: StoredRun,
    { path }: OwnFolder,
    signal: AbortSignal,
  ): Promise<RenderJob['references']> {
    const attempt = () =>
      references.load(input, path, signal).catch((error) => {
        // Retry after a full disk or a locked database, as after unavailable storage.
        throw isDiskUnusable(error) ? new StorageUnavailable(describeReason(error), { cause: error }) : error
      })
    return await untilStorageAnswers(attempt, { clock, signal, onError })
  }

  return {
    get fullAccounts() {
      const accounts = [...inPreparation].map(({ accountId }) => accountId)
      return [...new Set(accounts)].filter(
        (account) => accounts.filter((each) => each === account).length >= MAX_PREPARED_OF_ACCOUNT,
      )
    },
    mayClaim(model, claimed) {
      const inSlots = claimed.filter((run) => !inPreparation.has(run))
      const isNodeFull = inSlots.filter((run) => slotsOf(run).includes(slots)).length >= concurrency
      if (inPreparation.size >= MAX_PREPARED || (isNodeFull && !model.isRemote)) return false
      const isOfModel = (run: StoredRun) => run.model === model.document.name
      const limit = limitOf(model)
      return (
        inSlots.filter(isOfModel).length < limit &&
        (limit === Number.POSITIVE_INFINITY ||
          [...inPreparation].filter(isOfModel).length < MAX_PREPARED_OF_MODEL)
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
          await loading.use(
            async () => {
              await mkdir(workFolder, { recursive: true, mode: 0o700 })
              folder = await makeOwnFolder(workFolder, `${run.id}-references-`)
              files = await load(run, folder, signal)
            },
            { signal },
          )
        }
        for (const each of slotsOf(run)) releases.push(await each.take({ signal }))
        if (inPreparation.delete(run)) onPrepared()
        return await work(files)
      } finally {
        inPreparation.delete(run)
        await folder?.remove().catch(onError)
        for (const release of releases) release()
      }
    },
  }
}

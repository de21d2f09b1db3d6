/** What a node needs to render runs: the worker with its lease, the images that inputs name, and the removal of old files. */
import { join } from 'node:path'
import type { DataFolders } from './data-folders.js'
import type { Storage } from './files/contract.js'
import type { Log } from './log.js'
import { createReferenceFetch } from './references/reference-fetch.js'
import { createReferenceLoader } from './references/reference-loader.js'
import { createRetention, type Retention } from './retention.js'
import type { ServiceOptions } from './service.js'
import type { Claims } from './store/contract.js'
import type { ServiceStore } from './store/service-store.js'
import { removeAbandonedFolders } from './worker/work-folders.js'
import { createWorker, type Worker } from './worker/worker.js'
import { createWorkerLease } from './worker/worker-lease.js'

export interface RenderingParts {
  readonly options: ServiceOptions
  readonly store: ServiceStore
  readonly storage: Pick<Storage, 'outputs' | 'inputs'>
  readonly folders: Pick<DataFolders, 'work'>
  readonly events: Log
  onError(error: unknown): void
  /** Whether images may come from private addresses. */
  mayFetchPrivate(): boolean
}

export interface Rendering {
  readonly worker: Worker
  start(claims: Claims | undefined): void
  /** Returns unfinished renders to the queue. */
  close(): Promise<void>
}

export function createRendering(parts: RenderingParts): Rendering {
  const { options, store, storage, folders, events, onError, mayFetchPrivate } = parts
  const { engine, clock, concurrency, metrics, env = {} } = options
  const { outputs, inputs } = storage
  const lease = createWorkerLease({ store, clock, onError })
  const referenceFetch = createReferenceFetch({ privateAllowed: mayFetchPrivate, clock, env })
  const { findImage, findOutput } = store
  const worker = createWorker({
    store,
    lease,
    clock,
    concurrency,
    timeRender: metrics?.timeRender,
    log: events,
    onError,
    engine,
    references: createReferenceLoader({
      inputs,
      outputs,
      fetch: referenceFetch,
      clock,
      findImage,
      findOutput,
    }),
    workFolder: join(folders.work, lease.id),
    outputs,
  })
  const retention = retentionOf(parts)
  return {
    worker,
    start(claims) {
      worker.start(claims)
      retention.start()
    },
    async close() {
      await Promise.all([
        worker.close().then(lease.release).catch(onError),
        referenceFetch.close(),
        retention.close(),
      ])
    },
  }
}

function retentionOf({ options, store, storage, folders, events, onError }: RenderingParts): Retention {
  const { retainMs, clock } = options
  const removeWorkFolders = () => removeAbandonedFolders({ work: folders.work, store, clock, onError })
  return createRetention({ store, storage, clock, retainMs, log: events, removeWorkFolders, onError })
}

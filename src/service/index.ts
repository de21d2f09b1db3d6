/**
 * The local service: the published interface (SERVICE.md), here, with a renderer behind it. `rushes serve` runs it on a
 * port, `--local` inside the process of the command, tests without any port.
 *
 *   http/        Fastify: routes and answers, no rules
 *   rules/       pure: who is asking, how often, for what
 *   faults/      what goes wrong when it is asked for (`serve --fault`)
 *   runs.ts      the two endpoints without HTTP
 *   store/       what is remembered: a small contract, SQLite behind it
 *   worker/      leases, the queue, one render
 *   references/  the images that an input names
 *   engines/     what makes the outputs
 *
 * Limits: accounts have no balance, keys no limits, and there is no administration yet.
 */

import { join } from 'node:path'
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { doneWithin } from './closing.js'
import { openData } from './data.js'
import { createFaults, type Fault, type Faults } from './faults/index.js'
import { createApp } from './http/app.js'
import { fetchInto } from './http/inject.js'
import { type Address, isOpenToOthers, type Listening, listenOn } from './http/listening.js'
import { openKeys } from './keys.js'
import { LOCAL_MODELS } from './models.js'
import { createReferenceFetch } from './references/fetch.js'
import { saveImage } from './references/inputs.js'
import { createReferences } from './references/references.js'
import { createRuns } from './runs.js'
import { createPresence } from './worker/presence.js'
import type { ServiceEngine } from './worker/render.js'
import { createWorker } from './worker/worker.js'

export const DEFAULT_BODY_LIMIT_BYTES = 64 * 1_048_576

/** What output URLs begin with while the service neither listens nor has a public URL. */
const PLACEHOLDER_URL = 'http://localhost'

/** Answers in progress get this long when the service closes, and everything together that long. */
const ANSWERS_GRACE_MS = 3_000
const CLOSE_WITHIN_MS = 4_500

export interface ServiceOptions {
  /** Made private when it does not exist; holds the database, inputs and outputs. */
  readonly dataFolder: string
  readonly engine: ServiceEngine
  readonly clock: Clock
  /** How many runs are rendered at once. */
  readonly concurrency: number
  readonly bodyLimitBytes?: number | undefined
  /** What output URLs begin with, in place of the address that the service listens on. */
  readonly publicUrl?: string | undefined
  /** A key for the account `default` that lives in memory only: for a service inside one command. */
  readonly ephemeralKey?: boolean | undefined
  /** Where proxies for references are looked up. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** What is to go wrong on purpose, for requests over the port. */
  readonly faults?: readonly Fault[] | undefined
  /** Told of each of these when it strikes, as in `create answered 429`. */
  readonly onFault?: ((words: string) => void) | undefined
  /** Told of what went wrong inside the service; never of keys or prompts. */
  readonly log?: ((line: object | string) => void) | undefined
}

/** Without any, no request is looked at for them. */
const faultsOf = ({ faults = [], clock, onFault }: ServiceOptions): Faults | undefined =>
  faults.length === 0 ? undefined : createFaults({ faults, clock, ...(onFault && { onStrike: onFault }) })

export interface Service {
  /** The ephemeral key; else the first key on the first start of a data folder, shown this once; else undefined. */
  readonly apiKey: string | undefined
  /** Straight into the service, without a port. */
  readonly fetch: Fetch
  /** Resolves with the address once connections are taken. Throws `RushesError` (usage) when it cannot listen. */
  listen(address: Address): Promise<{ readonly url: string }>
  /** Begins to take runs from the queue. */
  startRendering(): void
  /** Finishes the answers in progress, gives back what is being rendered; within 5 s whatever happens. */
  close(): Promise<void>
}

/** Throws `RushesError` (usage) when the data folder cannot be used, or is of a later version. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { engine, clock, concurrency, log = () => {} } = options
  const publicUrl = options.publicUrl?.replace(/\/+$/, '')
  const onError = (error: unknown) => log(error instanceof Error ? error : String(error))
  let listening: Listening | undefined
  const baseUrl = () => publicUrl ?? listening?.url ?? PLACEHOLDER_URL

  const { folders, store } = await openData(options.dataFolder)
  const keys = await openKeys(store, clock.now(), options.ephemeralKey ?? false)

  const presence = createPresence({ store, clock, onError })
  const referenceFetch = createReferenceFetch({
    privateAllowed: () => !isOpenToOthers(listening?.host, publicUrl),
    clock,
    env: options.env ?? {},
  })
  const worker = createWorker({
    store,
    presence,
    clock,
    concurrency,
    onError,
    engine,
    references: createReferences({ folders, fetch: referenceFetch, findOutput: store.findOutput }),
    workFolder: join(folders.work, presence.id),
    outputsFolder: folders.outputs,
  })
  const runs = createRuns({
    store,
    models: LOCAL_MODELS,
    clock,
    presence,
    worker,
    findKey: keys.find,
    saveImage: (image) => saveImage(folders.inputs, image),
  })
  const app = await createApp({
    runs: { runs, baseUrl, bodyLimitBytes: options.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES },
    outputs: { folder: folders.outputs, findOutput: store.findOutput },
    faults: faultsOf(options),
    onError,
  })

  async function closeHttp(): Promise<void> {
    const closed = app.close()
    if (!(await doneWithin(ANSWERS_GRACE_MS, closed, clock))) app.server.closeAllConnections()
    await closed
  }

  async function closeAll(): Promise<void> {
    await Promise.all([
      closeHttp(),
      worker.close().then(() => presence.leave()),
      referenceFetch.close(),
      engine.close?.(),
    ])
    await store.close()
  }

  let closing: Promise<void> | undefined
  return {
    apiKey: keys.shown,
    fetch: fetchInto({
      app,
      isClosed: () => closing !== undefined,
      prefix: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, ''),
    }),
    async listen(address) {
      listening = await listenOn(app, address)
      return { url: listening.url }
    },
    startRendering: () => worker.start(),
    async close() {
      closing ??= doneWithin(CLOSE_WITHIN_MS, closeAll().catch(onError), clock).then(() => {})
      await closing
    },
  }
}

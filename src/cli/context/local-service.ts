/** The local service inside this process, without a port: its requests go to its handler. Its data is in the state folder. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { usageError } from '../../errors.js'
import type { Fetch } from '../../host/http.js'
import { ANSWER_GRACE_MS } from '../../runs/run.js'
import type { Engine } from '../../service/engines/engine.js'
import { createProcessEngine } from '../../service/engines/process.js'
import { createService } from '../../service/index.js'
import type { AddedModel } from '../../service/models/model-set.js'
import { type AssetFiles, readAssets } from '../../service/web/assets.js'
import { checkListens, openLocalModels } from '../models/local-models.js'
import { LOCAL_FOLDER } from '../settings/folders.js'
import type { Settings } from '../settings/settings.js'
import { GRACE_NOTE } from '../terminal/format.js'
import type { App, Connection } from './context.js'

/** Number of renders at the same time: one per core, at most four, because each render holds a 4K frame in memory. */
export const defaultConcurrency = (): number => Math.min(4, availableParallelism())

/** Starts the renderer. The renderer and the thumbnailer are separate bundles in the same folder as this bundle. */
export const createPreviewProcess = (): Engine =>
  createProcessEngine({ script: new URL('./renderer.cjs', import.meta.url) })

export const createThumbnailProcess = (): Engine =>
  createProcessEngine({ script: new URL('./thumbnailer.cjs', import.meta.url) })

/**
 * Reads the files of the console's pages, which the build writes beside this bundle. Undefined when they are missing, as in a
 * source checkout.
 */
export const readConsoleFiles = (): Promise<AssetFiles | undefined> =>
  readAssets(fileURLToPath(new URL('./console/', import.meta.url)))

/** Base of the URLs of its outputs. No host has this name (RFC 2606), so that no request leaves the process. */
const LOCAL_URL = 'http://rushes.invalid'

interface LocalService extends Required<Omit<Connection, 'client'>> {
  readonly url: string
  readonly apiKey: string
}

interface LocalOptions {
  /** Whether this process renders the runs that the command waits for. Other runs stay queued. */
  readonly render: boolean
  /** The engine of `--engine`. */
  readonly engine: AddedModel | undefined
}

export async function openLocalService(
  app: App,
  settings: Settings,
  { render, engine: lineEngine }: LocalOptions,
): Promise<LocalService> {
  const { env, clock, configFolder, stateFolder, out } = app
  const sources = { path: settings.setting('localModels'), configFolder, env, engine: lineEngine }
  const set = await openLocalModels(sources, render)
  const preview = app.parts.engine ?? createPreviewProcess()
  const network: Fetch = async (request) => (await app.fetch())(request)
  const parts = { env, clock, fetch: network, urls: [], preview: () => preview, warn: out.warn }
  const all = render ? set.createEngine(parts) : undefined
  if (lineEngine !== undefined) {
    const { url } = lineEngine.engine
    if (render && typeof url === 'string')
      await checkListens(new URL(url), { fetch: network, clock, signal: app.interrupts.first })
    const [own] = set.models
    if (all !== undefined && own !== undefined) out.note(`Model: ${own.document.name}.`)
  }
  const service = await createService({
    dataFolder: join(stateFolder, LOCAL_FOLDER),
    models: set.models,
    engine: all ?? preview,
    clock,
    concurrency: defaultConcurrency(),
    publicUrl: LOCAL_URL,
    ephemeralKey: true,
    env,
    log: out.warn,
  })
  app.onClose(() => service.close({ graceMs: ANSWER_GRACE_MS, onGrace: () => out.note(GRACE_NOTE) }))
  if (render) service.startRendering('requested')
  return {
    url: LOCAL_URL,
    apiKey: service.apiKey ?? '',
    fetch: (request) => (request.url.origin === LOCAL_URL ? service.fetch : network)(request),
    checkModel(model) {
      const found = set.models.find(({ document }) => document.name === model)
      if (found?.problem !== undefined) throw usageError(`The model ${model} cannot run. ${found.problem}`)
    },
    async checkRun(id, mustExist = false) {
      const problem = await service.findProblem(id, mustExist)
      if (problem === undefined) return
      throw usageError(
        `The model of ${id} cannot run. ${problem}`,
        'Repeat the command with the key of its provider, and with its files in their places.',
      )
    },
  }
}

/** The local service inside this process: HTTP on a loopback port, with data in the state folder. */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../host/clock.js'
import { describeError } from '../../host/system-error.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { ANSWER_GRACE_MS } from '../../runs/run.js'
import type { Engine } from '../../service/engines/engine.js'
import { createProcessEngine } from '../../service/engines/process.js'
import { createService } from '../../service/index.js'
import type { ServedModel } from '../../service/models/served-model.js'
import type { Service } from '../../service/service.js'
import { type AssetFiles, readAssets } from '../../service/web/assets.js'
import type { Env } from '../process/io.js'
import { GRACE_NOTE } from '../terminal/format.js'

export interface LocalService {
  readonly url: string
  readonly apiKey: string
  /** Finds the files of output URLs in the data folder. */
  filesOf(urls: readonly string[]): Promise<readonly DownloadedFile[]>
  close(): Promise<void>
}

export interface LocalOptions {
  readonly dataFolder: string
  readonly models: readonly ServedModel[]
  readonly engine: Engine
  readonly clock: Clock
  /** Whether this process renders the runs that the command waits for. Other runs stay queued. */
  readonly render: boolean
  readonly env: Env
  warn(message: string): void
  note(message: string): void
}

/** Formats a log entry of the service as one line. */
export const textOfLogLine = (line: object | string): string =>
  line instanceof Error ? describeError(line) : typeof line === 'string' ? line : JSON.stringify(line)

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

export async function openLocalService({
  dataFolder,
  models,
  engine,
  clock,
  render,
  env,
  warn,
  note,
}: LocalOptions): Promise<LocalService> {
  const service = await createService({
    dataFolder,
    models,
    engine,
    clock,
    concurrency: defaultConcurrency(),
    ephemeralKey: true,
    env,
    log: (line) => warn(textOfLogLine(line)),
  })
  try {
    const { url } = await service.listen({ host: '127.0.0.1', port: 0 })
    if (render) service.startRendering('requested')
    return {
      url,
      apiKey: service.apiKey ?? '',
      filesOf: (urls) => outputFiles(service, urls),
      close: () => service.close({ graceMs: ANSWER_GRACE_MS, onGrace: () => note(GRACE_NOTE) }),
    }
  } catch (error) {
    await service.close()
    throw error
  }
}

async function outputFiles(service: Service, urls: readonly string[]): Promise<readonly DownloadedFile[]> {
  const files: DownloadedFile[] = []
  for (const url of urls) {
    const found = await service.findOutputFile(url)
    if (found === undefined) continue
    const { path, bytes, sha256, contentType: content_type } = found
    files.push({ path, bytes, sha256, url, content_type })
  }
  return files
}

/** The real service with the built page on a real port, in real time: a browser has a clock of its own. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { createThumbnailEngine } from '../../src/preview/thumbnail.js'
import type { RunDetails } from '../../src/protocol/console.js'
import type { Kind } from '../../src/protocol/models.js'
import { RUNS_PATH } from '../../src/protocol/routes.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { createService, type Service, type ServiceOptions } from '../../src/service/index.js'
import type { Store } from '../../src/service/store/contract.js'
import type { OpenedPage, OpenOptions, Pages } from '../support/browser.js'
import { builtPage, openConsole, sessionCookie, stateWith } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'
import { databaseUrlOf, openStoreOf } from '../support/test-database.js'
import { tinyVideo } from '../support/tiny-video.js'

export const EMAIL = 'ann@example.com'
/** Text that would do harm as markup. */
export const XSS = '</script><img src=x onerror=alert(1)>'

/** For what the page asks for every few seconds. */
export const PATIENCE = { timeout: 20_000 } as const

export interface PageService {
  readonly service: Service
  readonly url: string
  readonly apiKey: string
  readonly dataFolder: string
  /** The service's own, beside it. */
  withStore<T>(use: (store: Store) => Promise<T>): Promise<T>
  /** Creates a run as a program with the key does. */
  create(input: Readonly<Record<string, unknown>>, kind?: Kind): Promise<{ readonly id: string }>
  /** The page at a fragment, with a session. */
  open(fragment: string, options?: OpenOptions): Promise<OpenedPage>
}

/** Call within a test. */
export async function servePage(pages: Pages, options: Partial<ServiceOptions> = {}): Promise<PageService> {
  const dataFolder = temporaryFolder()
  const databaseUrl = await databaseUrlOf(dataFolder)
  const service = await createService({
    engine: createPaintingEngine(),
    thumbnailEngine: createPatientThumbnailEngine(),
    ...{ concurrency: 2, clock: systemClock, console: await builtPage(), dataFolder, databaseUrl },
    ...options,
  })
  onTestFinished(() => service.close())
  service.startRendering()
  const { url } = await service.listen({ host: '127.0.0.1', port: 0 })

  const withStore = async <T>(use: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStoreOf({ dataFolder, databaseUrl })
    return await use(store).finally(() => store.close())
  }
  const apiKey = service.apiKey ?? ''
  const parts = { fetch: service.fetch, baseUrl: url, clock: systemClock, dataFolder, databaseUrl }
  const storageState = stateWith(url, await sessionCookie(parts, EMAIL))
  return {
    ...{ service, url, apiKey, dataFolder, withStore },
    async create(input, kind = 'image') {
      const model = options.models?.[kind] ?? `rushes/preview-${kind}`
      const response = await fetch(`${url}${RUNS_PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model, input }),
      })
      if (response.status !== 201) throw new Error(await response.text())
      return (await response.json()) as RunDetails
    },
    open: (fragment, more) =>
      openConsole(pages, { url }, fragment, { ignored: undefined, ...more, storageState }),
  }
}

/** Goes on when its time is over: on a busy machine a picture is late, and none is refused. */
function createPatientThumbnailEngine(): Engine {
  const engine = createThumbnailEngine()
  const { signal } = new AbortController()
  return { render: (job) => engine.render({ ...job, signal }) }
}

let video: Promise<Uint8Array> | undefined

export interface PaintingEngine extends Engine {
  /** How many jobs wait for the test. */
  readonly waiting: number
  /** Lets the oldest of them finish. */
  finish(): void
}

/** Makes a real picture or video at once. A prompt with WAIT waits for the test, and one with FAIL fails with its prompt. */
export function createPaintingEngine(): PaintingEngine {
  const waiting: (() => void)[] = []
  return {
    get waiting() {
      return waiting.length
    },
    finish: () => waiting.shift()?.(),
    async render({ kind, input, folder, signal }) {
      const prompt = String(input.prompt)
      if (prompt.includes('WAIT'))
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve)
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      if (prompt.includes('FAIL')) throw new Error(`cannot draw ${prompt}`)
      video ??= tinyVideo()
      const file =
        kind === 'video'
          ? { name: 'film.mp4', contentType: 'video/mp4', bytes: await video }
          : { name: 'picture.png', contentType: 'image/png', bytes: ONE_PIXEL_PNG }
      await writeFile(join(folder, file.name), file.bytes)
      return [file]
    },
  }
}

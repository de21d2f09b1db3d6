/** The real service with the built page on a real port, in real time: a browser has a clock of its own. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { FINISHED_POLL_MS } from '../../src/console/polling.js'
import { type Clock, systemClock } from '../../src/host/clock.js'
import { createThumbnailEngine } from '../../src/preview/thumbnail.js'
import type { RunDetails } from '../../src/protocol/console.js'
import { RUNS_PATH } from '../../src/protocol/id.js'
import type { Kind } from '../../src/protocol/models.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { createService } from '../../src/service/index.js'
import { defaultDocument, PREVIEW_MODELS } from '../../src/service/models/served-model.js'
import type { Service, ServiceOptions } from '../../src/service/service.js'
import { whenOver } from '../support/after-file.js'
import type { OpenedPage, Pages } from '../support/browser.js'
import { withStore } from '../support/console.js'
import {
  builtPage,
  type OpenConsoleOptions,
  openConsole,
  sessionCookie,
  stateWith,
} from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { createQuickPasswords } from '../support/passwords.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { databaseUrlOf } from '../support/test-database.js'
import { tinyVideo } from '../support/tiny-video.js'

export const EMAIL = 'ann@example.com'
/** Text that would do harm as markup. */
export const XSS = '</script><img src=x onerror=alert(1)>'

/** What a page with `hasClock` shows when it has asked again, without the seconds between its requests. */
export const afterPolls = <T>(page: Page, read: () => Promise<T>) =>
  expect.poll(
    async () => {
      await page.clock.fastForward(FINISHED_POLL_MS)
      return await read()
    },
    // A user may ask 20 times a second.
    { interval: 100 },
  )

export interface PageService {
  readonly service: Service
  readonly url: string
  readonly apiKey: string
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  readonly clock: Clock
  /** Creates a run as a program with the key does. It has finished, unless its prompt has WAIT. */
  create(input: Readonly<Record<string, unknown>>, kind?: Kind): Promise<{ readonly id: string }>
  /** The page at a fragment, with a session. */
  open(fragment: string, options?: OpenConsoleOptions): Promise<OpenedPage>
}

/** Call within a test or `beforeAll`. */
export async function servePage(pages: Pages, options: Partial<ServiceOptions> = {}): Promise<PageService> {
  const dataFolder = temporaryFolder()
  const databaseUrl = await databaseUrlOf(dataFolder)
  const service = await createService({
    engine: createPaintingEngine(),
    thumbnailEngine: createPatientThumbnailEngine(),
    passwords: createQuickPasswords(),
    ...{ concurrency: 2, clock: systemClock, console: await builtPage(), dataFolder, databaseUrl },
    ...options,
  })
  whenOver(() => service.close())
  service.startRendering()
  const { url } = await service.listen({ host: '127.0.0.1', port: 0 })

  const apiKey = service.apiKey ?? ''
  const parts = { dataFolder, databaseUrl, clock: systemClock }
  const asked = { ...parts, fetch: service.fetch, baseUrl: url }
  const storageState = stateWith(url, await sessionCookie(asked, EMAIL))
  return {
    ...{ ...parts, service, url, apiKey },
    async create(input, kind = 'image') {
      const model = defaultDocument(
        (options.models ?? PREVIEW_MODELS).map(({ document }) => document),
        kind,
      )?.name
      const response = await fetch(`${url}${RUNS_PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model, input }),
      })
      if (response.status !== 201) throw new Error(await response.text())
      const run = (await response.json()) as RunDetails
      const statusOf = () => withStore(parts, async (store) => (await store.findRun(run.id, 1))?.status)
      if (!String(input.prompt).includes('WAIT'))
        await expect.poll(statusOf, { interval: 10 }).toMatch(/succeeded|failed/)
      return run
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

/** Files as a drop or a paste carries them. */
export async function giveFiles(
  page: Page,
  event: 'drop' | 'paste',
  files: readonly (readonly [string, Buffer])[],
): Promise<void> {
  await page.locator('.drop-zone').waitFor()
  const list = JSON.stringify(files.map(([name, bytes]) => [name, bytes.toString('base64')]))
  await page.evaluate(`{
    const transfer = new DataTransfer()
    for (const [name, data] of ${list})
      transfer.items.add(new File([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], name))
    const target = document.querySelector('.drop-zone')
    target.dispatchEvent(${
      event === 'drop'
        ? "new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true })"
        : "new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true })"
    })
  }`)
}

/** The real service with the built page on a real port, in real time: a browser has a clock of its own. */
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { AUTH_PATHS, type RunDetails } from '../../src/protocol/console.js'
import type { Kind } from '../../src/protocol/models.js'
import { RUNS_PATH } from '../../src/protocol/routes.js'
import { addLink } from '../../src/service/console/first-user.js'
import { readPage } from '../../src/service/console/page.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { createService, type Service, type ServiceOptions } from '../../src/service/index.js'
import type { Store } from '../../src/service/store/contract.js'
import type { OpenedPage, OpenOptions, Pages } from '../support/browser.js'
import { PASSWORD } from '../support/console.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'
import { databaseUrlOf, openStoreOf } from '../support/test-database.js'

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
  const page = await readPage(fileURLToPath(new URL('../../dist/console/', import.meta.url)))
  if (page === undefined) throw new Error('The page is not built: node build.mjs')
  const service = await createService({
    engine: createPaintingEngine(),
    ...{ concurrency: 2, clock: systemClock, console: page, dataFolder, databaseUrl },
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
  const cookie = await cookieOf(url, await withStore(newLink))
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
      pages.open(`${url}/${fragment}`, { ...more, storageState: { cookies: [cookie], origins: [] } }),
  }
}

async function newLink(store: Store): Promise<string> {
  const nowMs = Date.now()
  const accountId = await store.ensureAccount({ name: 'default', credits: 0, nowMs })
  const userId = await store.addUser({ email: EMAIL, accountId, nowMs })
  if (userId === undefined) throw new Error('the user exists')
  return await addLink(store, userId, nowMs)
}

/** The session that a link begins, with a password. */
async function cookieOf(url: string, token: string) {
  const post = (path: string, body: unknown, cookie = '') =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { origin: url, 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    })
  const sessionIn = (response: Response) =>
    /rushes_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
  const linked = await post(AUTH_PATHS.link, { token })
  const value = sessionIn(linked) ?? ''
  const changed = await post(AUTH_PATHS.password, { password: PASSWORD }, `rushes_session=${value}`)
  if (changed.status !== 200) throw new Error(`${linked.status} ${await changed.text()}`)
  return {
    ...{ name: 'rushes_session', value: sessionIn(changed) ?? value, domain: '127.0.0.1', path: '/' },
    ...{ expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' as const },
  }
}

let video: Promise<Uint8Array> | undefined

async function tinyVideo(): Promise<Uint8Array> {
  const { createH264MP4Encoder } = createRequire(import.meta.url)('h264-mp4-encoder')
  const encoder = await createH264MP4Encoder()
  Object.assign(encoder, { width: 64, height: 32, frameRate: 10 })
  encoder.initialize()
  for (let at = 0; at < 40; at++) encoder.addFrameRgba(new Uint8Array(64 * 32 * 4).fill(at * 6))
  encoder.finalize()
  const bytes: Uint8Array = encoder.FS.readFile(encoder.outputFilename)
  encoder.delete()
  return bytes
}

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

interface Violation {
  readonly id: string
  readonly impact?: string | null
  readonly nodes: readonly { readonly html: string }[]
}

/** Nothing that axe-core calls serious or critical, and nothing that is wider than the window. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as { readonly violations: readonly Violation[] }
  const serious = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  expect(serious).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
}

/** Everything that was asked for came from the service. */
export const expectOwnRequests = (requests: readonly string[], url: string): void =>
  expect(requests.filter((each) => !each.startsWith(`${url}/`))).toEqual([])

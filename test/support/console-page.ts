/** Opens the console in a real browser, with a service on a real port. */
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Page as BrowserPage } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { readAssets } from '../../src/service/web/assets.js'
import type { OpenedPage, OpenOptions, Pages } from './browser.js'
import { createConsoleService, signInByLink } from './console.js'
import type { TestService, TestServiceOptions } from './service.js'

interface ServedConsole extends TestService {
  /** URL without a slash at the end. */
  readonly url: string
}

/** Starts a service with the clock of the test and the built files. Call it within a test. */
export async function serveConsole(options: TestServiceOptions = {}): Promise<ServedConsole> {
  const console = await readAssets(fileURLToPath(new URL('../../dist/console/', import.meta.url)))
  if (console === undefined) throw new Error('The files of the pages are not built: npm run build')
  const service = await createConsoleService({ console, port: 0, rendering: true, ...options })
  return { ...service, url: service.baseUrl }
}

/** Refusals, which the browser logs as errors. */
const REFUSALS = /^Failed to load resource: .* (401|404|422|503) /

/** Opens a page of the console. Errors of the browser, and requests to other origins, fail the test. */
export async function openConsole(
  pages: Pages,
  { url }: Pick<ServedConsole, 'url'>,
  path: string,
  options: OpenOptions = {},
): Promise<OpenedPage> {
  const opened = await pages.open(`${url}${path}`, { ignored: REFUSALS, ...options })
  onTestFinished(() => {
    const origins = new Set(opened.requests.map((request) => new URL(request).origin))
    expect([...origins].filter((origin) => origin !== new URL(url).origin)).toEqual([])
  })
  return opened
}

/** Like `openConsole`, for a signed-in user of the default account. */
export async function openSignedIn(
  pages: Pages,
  service: ServedConsole,
  path: string,
  options: OpenOptions = {},
): Promise<OpenedPage> {
  const { cookie = '' } = await signInByLink(service)
  const domain = new URL(service.url).hostname
  return await openConsole(pages, service, path, {
    ...options,
    storageState: {
      cookies: [
        {
          ...{ name: 'rushes_session', value: cookie, domain, path: '/', expires: -1 },
          ...{ httpOnly: true, secure: false, sameSite: 'Strict' as const },
        },
      ],
      origins: [],
    },
  })
}

const SERIOUS: readonly unknown[] = ['serious', 'critical']
export const ANY_IMPACT: readonly unknown[] = ['minor', 'moderate', ...SERIOUS]

/** Checks that axe finds no violation of these impacts, and that nothing is wider than the window. */
export async function expectAccessible(page: BrowserPage, impacts = SERIOUS): Promise<void> {
  // Runs in the isolated world of the test, where the content security policy of the page does not apply.
  const { violations } = await page.evaluate<{ violations: axe.Result[] }>(`${axe.source}; axe.run()`)
  const found = violations
    .filter(({ impact }) => impacts.includes(impact))
    .map(({ id, nodes }) => ({ id, at: nodes.map(({ html, failureSummary }) => [html, failureSummary]) }))
  expect(found).toEqual([])
  const tooMuch = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  expect(Number(tooMuch), page.url()).toBeLessThanOrEqual(0)
}

/** Opens the built console in a real browser, with a service on a real port. */
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Page as BrowserPage } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { TOAST_MS } from '../../src/console/components/toast.js'
import { AUTH_PATHS } from '../../src/protocol/console.js'
import { type Page, readPage } from '../../src/service/console/page.js'
import type { OpenedPage, OpenOptions, Pages } from './browser.js'
import { addUser, createBrowser, createConsoleService, PASSWORD, type UserTarget } from './console.js'
import type { TestService, TestServiceOptions } from './service.js'

export const EMAIL = 'ada@example.com'

export interface ServedConsole extends TestService {
  /** URL without a slash at the end. */
  readonly url: string
}

export async function builtPage(): Promise<Page> {
  const page = await readPage(fileURLToPath(new URL('../../dist/console/', import.meta.url)))
  if (page === undefined) throw new Error('The page is not built: node build.mjs')
  return page
}

/** Starts a service with the clock of the test. Call it within a test. */
export async function serveConsole(options: TestServiceOptions = {}): Promise<ServedConsole> {
  const service = await createConsoleService({
    console: await builtPage(),
    publicUrl: undefined,
    rendering: true,
    ...options,
  })
  const { url } = await service.service.listen({ host: '127.0.0.1', port: 0 })
  return { ...service, url, baseUrl: url }
}

/** Responses for a missing session, a wrong password and the like, which the browser logs as errors. */
const REFUSALS = /^Failed to load resource: .* (400|401|403|404|409|429) /

export interface OpenConsoleOptions extends OpenOptions {
  /** Another origin that the page may request. */
  readonly elsewhere?: string
}

/** Toasts stay until the page changes or they are dismissed: on a slow machine they would be gone before a test reads them. */
const KEEP_TOASTS = `{
  const { setTimeout } = window
  window.setTimeout = (work, ms, ...more) =>
    ${JSON.stringify(Object.values(TOAST_MS))}.includes(ms) ? 0 : setTimeout(work, ms, ...more)
}`

/** Opens a page of the console. Errors of the browser, and requests to other origins, fail the test. */
export async function openConsole(
  pages: Pages,
  { url }: Pick<ServedConsole, 'url'>,
  fragment = '',
  { elsewhere, ...options }: OpenConsoleOptions = {},
): Promise<OpenedPage> {
  const opened = await pages.open(`${url}/${fragment}`, {
    ignored: REFUSALS,
    initScript: KEEP_TOASTS,
    ...options,
  })
  const allowed = [new URL(url).origin, elsewhere]
  onTestFinished(() => {
    const origins = new Set(opened.requests.map((request) => new URL(request).origin))
    expect([...origins].filter((origin) => !allowed.includes(origin))).toEqual([])
  })
  return opened
}

/** Like `openConsole`, for a signed-in user with a password. Sets the cookie instead of using the form. */
export async function openSignedIn(
  pages: Pages,
  service: ServedConsole,
  fragment = '',
  options: OpenConsoleOptions & { readonly email?: string; readonly account?: string } = {},
): Promise<OpenedPage> {
  const { email = EMAIL, account, ...rest } = options
  const cookie = await sessionCookie(service, email, account)
  return await openConsole(pages, service, fragment, {
    ...rest,
    storageState: stateWith(service.url, cookie),
  })
}

/** Fills the form of the sign-in page, and sends it. */
export async function signIn(page: BrowserPage, email = EMAIL, password = PASSWORD): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Returns the storage of a browser with this session. */
export const stateWith = (url: string, cookie: string) => ({
  cookies: [
    {
      ...{ name: 'rushes_session', value: cookie, domain: new URL(url).hostname, path: '/', expires: -1 },
      ...{ httpOnly: true, secure: false, sameSite: 'Strict' as const },
    },
  ],
  origins: [],
})

/** Returns the session cookie of a user with `PASSWORD`. Creates the user if necessary. */
export async function sessionCookie(
  service: UserTarget & Parameters<typeof createBrowser>[0],
  email = EMAIL,
  account?: string,
): Promise<string> {
  const browser = createBrowser(service)
  // If the user has a password, sign in for another session: setting the password again would end the first one.
  const { status } = await browser.post(AUTH_PATHS.signIn, { email, password: PASSWORD })
  if (status === 200 && browser.cookie !== undefined) return browser.cookie
  await browser.post(AUTH_PATHS.link, { token: await addUser(service, email, account) })
  await browser.post(AUTH_PATHS.password, { password: PASSWORD })
  if (browser.cookie === undefined) throw new Error('the link was refused')
  return browser.cookie
}

export interface HeldAnswer {
  /** Sends the response. Resolves when the page has shown it. */
  release(): Promise<void>
  /** Breaks the connection of the page. */
  lose(): Promise<void>
}

/** Holds responses until the test releases each one, in any order. The service has already processed the requests. */
export async function holdAnswers(page: BrowserPage, method: string, url: string) {
  const held: HeldAnswer[] = []
  await page.route(url, async (route) => {
    if (route.request().method() !== method) return await route.continue()
    const response = await route.fetch()
    held.push({
      async release() {
        const isAnswered = page.waitForResponse((each) => each.request() === route.request())
        await route.fulfill({ response })
        await (await isAnswered).finished()
        await page.evaluate(
          'new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))',
        )
      },
      lose: () => route.abort(),
    })
  })
  return {
    /** Waits for the response with this index. */
    async taken(at: number): Promise<HeldAnswer> {
      await expect.poll(() => held.length).toBeGreaterThan(at)
      return held[at] as HeldAnswer
    },
  }
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
  await expectFit(page)
}

/** Checks that nothing is wider than the window. */
export async function expectFit(page: BrowserPage): Promise<void> {
  const tooMuch = () => page.evaluate('document.documentElement.scrollWidth - window.innerWidth')
  // A chart is redrawn after the window has changed its size, so retry.
  await expect.poll(tooMuch, { message: page.url() }).toBeLessThanOrEqual(0)
}

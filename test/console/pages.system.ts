/** Each page in a real browser: what is live, what works without a script, and what axe and the policy say. */
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { readAssets } from '../../src/service/web/assets.js'
import {
  describePages,
  expectAccessible,
  type OpenedPage,
  type OpenOptions,
  type Pages,
} from '../support/browser.js'
import { createByKey, createConsoleService, createInConsole, signInByLink } from '../support/console.js'
import {
  createCommandedEngine,
  createInstantEngine,
  type TestService,
  type TestServiceOptions,
} from '../support/index.js'

const idle = (page: Page) => page.waitForTimeout(300)
const badge = (page: Page, id: string) => page.locator(`#${id} .badge`)

describePages('the pages of the console', (pages) => {
  it('Runs: rows are live through a 503, the focus stays, a hidden tab rests', async () => {
    const engine = createCommandedEngine()
    const service = await serveConsole({ engine })
    const user = await signInByLink(service)
    const id = await createInConsole(user)
    const { page, requests } = await openSignedIn(pages, service, '/runs')
    await page.locator(`#link-${id}`).focus()
    let isDown = true
    await page.route('**/runs/live*', (route) =>
      isDown ? route.fulfill({ status: 503, body: 'down' }) : route.continue(),
    )
    const polls = () => requests.filter((url) => url.includes('/runs/live')).length
    await expect.poll(polls).toBeGreaterThan(1)
    expect(await badge(page, id).count()).toBe(1)
    isDown = false
    engine.finish()
    await expect.poll(() => badge(page, id).textContent()).toBe('succeeded')
    expect(await page.evaluate('document.activeElement.id')).toBe(`link-${id}`)
    expect(await page.locator('#announcement').textContent()).toBe('1 run ended.')
    await page.evaluate('Object.defineProperty(document, "hidden", { value: true })')
    await idle(page)
    const before = polls()
    await page.waitForTimeout(4_500)
    expect(polls()).toBe(before)
  })

  it('Runs: a search filters as one types, older runs come on scrolling, and Back keeps the place', async () => {
    const service = await serveConsole({ rendering: false })
    await createByKey(service, 60)
    const { page } = await openSignedIn(pages, service, '/runs')
    for (const view of ['list', 'grid']) {
      await page.goto(`${service.url}/runs?view=${view}`)
      await expect
        .poll(async () => {
          await page.mouse.wheel(0, 4_000)
          return await page.locator('.run').count()
        })
        .toBe(60)
      const ids = await page.evaluate(
        'new Set([...document.querySelectorAll(".run")].map(({ id }) => id)).size',
      )
      expect(ids).toBe(60)
    }
    await page.getByRole('searchbox').pressSequentially('zebra', { delay: 20 })
    await page.getByText('No runs match.').waitFor()
    expect(new URL(page.url()).search).toBe('?view=grid&search=zebra&status=&model=&key=')
    expect(await page.getByRole('searchbox').inputValue()).toBe('zebra')
  })

  it('One run: it is live, the question of a cancel stays open, and it is canceled', async () => {
    const service = await serveConsole({ engine: createCommandedEngine() })
    const user = await signInByLink(service)
    const id = await createInConsole(user)
    const { page } = await openSignedIn(pages, service, `/runs/${id}`)
    await page.getByText('Cancel', { exact: true }).focus()
    await page.keyboard.press('Enter')
    const really = page.getByRole('button', { name: 'Really cancel' })
    await really.waitFor()
    await page.getByText('Rendering.').waitFor()
    await page.waitForTimeout(1_500)
    expect(await really.isVisible()).toBe(true)
    await really.click()
    await page.getByText('Its price was refunded.').waitFor()
    await page.getByText('curl', { exact: true }).click()
    expect(await page.locator('details[open]').count()).toBe(1)
  })

  it('One run: a cancel is offered no longer once it has ended', async () => {
    const engine = createCommandedEngine()
    const service = await serveConsole({ engine })
    const id = await createInConsole(await signInByLink(service))
    const { page } = await openSignedIn(pages, service, `/runs/${id}`)
    await page.getByText('Rendering.').waitFor()
    engine.finish()
    await page.getByText('Download').waitFor()
    expect(await page.locator('#announcement').textContent()).toBe('The run is now succeeded.')
    expect(await page.locator('#cancel').count()).toBe(0)
  })

  it('New run: the price is live, Enter creates, and Back then Create again is the same run', async () => {
    const service = await serveConsole({ rendering: false })
    const { page } = await openSignedIn(pages, service, '/new')
    await page.getByRole('radio', { name: /^Video/ }).check()
    await page.locator('#price', { hasText: '5 credits' }).waitFor()
    await page.getByRole('radio', { name: '10 s' }).check()
    await page.locator('#price', { hasText: '10 credits' }).waitFor()
    await page.getByRole('textbox', { name: 'Prompt' }).fill('a boat')
    await page.getByLabel('Seed').focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/runs\/run_/)
    const first = page.url()
    await page.goBack()
    expect(await page.getByRole('textbox', { name: 'Prompt' }).inputValue()).toBe('a boat')
    await page.getByRole('button', { name: 'Create', exact: true }).last().click()
    await page.waitForURL(/\/runs\/run_/)
    expect(page.url()).toBe(first)
  })

  it('API keys: a key is created, and a click selects it whole; a reload makes no other', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '/keys')
    await page.getByRole('link', { name: 'New key' }).click()
    await page.getByLabel('Name').fill('CI')
    await page.keyboard.press('Enter')
    await page.locator('.secret').click()
    expect(await page.evaluate('getSelection().toString()')).toMatch(/^rk_[\w-]{43}$/)
    await page.reload()
    await page.getByText('This key was created before').waitFor()
    expect(await page.locator('tbody tr').count()).toBe(2)
  })

  it('without a script: sign in, create, cancel, a key, credits, sign out', async () => {
    const service = await serveConsole({ rendering: false })
    const { linkToken } = service.service.console ?? {}
    const { page } = await openConsole(pages, service, `/link/${linkToken}`, { javaScriptEnabled: false })
    await page.getByRole('button', { name: 'Sign in with this link' }).click()
    await page.getByLabel('New password').fill('correct horse battery staple')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The password is set.').waitFor()
    await page.getByRole('link', { name: 'New run', exact: true }).click()
    await page.getByRole('radio', { name: /^Video/ }).check()
    await page.getByRole('button', { name: 'Show the fields of this model' }).click()
    await page.getByRole('radio', { name: '10 s' }).check()
    await page.getByRole('textbox', { name: 'Prompt' }).fill('a boat')
    await page.getByRole('button', { name: 'Create', exact: true }).last().click()
    await page.getByText('Waiting for its turn.').waitFor()
    await page.getByText('Cancel', { exact: true }).click()
    await page.getByRole('button', { name: 'Really cancel' }).click()
    await page.getByText('Its price was refunded.').waitFor()
    await page.goto(`${service.url}/keys/new`)
    await page.getByLabel('Name').fill('CI')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.locator('.secret').waitFor()
    await page.getByRole('link', { name: 'Credits', exact: true }).click()
    await page.getByText('+10', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  it('a session that ended leads live parts to the sign-in page', async () => {
    const service = await serveConsole({ rendering: false })
    const user = await signInByLink(service)
    await createInConsole(user)
    const { page } = await openSignedIn(pages, service, '/runs')
    await user.post('/api/auth/sign-out', { everywhere: true })
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  it.each(['light', 'dark'] as const)(
    'axe finds nothing, and nothing is too wide at 360 px: %s',
    async (colorScheme) => {
      const service = await serveConsole({ engine: createInstantEngine() })
      const user = await signInByLink(service)
      const long = await createInConsole(user, {
        prompt: `<b>${'x'.repeat(400)}</b> ${'a long prompt '.repeat(200)}`,
      })
      await user.submit('/keys/new', {
        name: `key-${'x'.repeat(90)}`,
        form_key: 'k',
        allowed_ips: '10.0.0.0/8',
      })
      const paths = [
        ...['/runs', '/runs?view=grid', '/runs?view=list&search=zebra', `/runs/${long}`, '/runs/none'],
        ...['/new', '/keys', '/keys/new', '/credits', '/account'],
      ]
      for (const width of [1_280, 360]) {
        const viewport = { width, height: 800 }
        const { page } = await openSignedIn(pages, service, '/runs', {
          colorScheme,
          viewport,
          reducedMotion: 'reduce',
        })
        for (const path of paths) {
          await page.goto(service.url + path)
          await expectAccessible(page)
        }
        const out = await openConsole(pages, service, '/sign-in', { colorScheme, viewport })
        await expectAccessible(out.page)
      }
    },
  )
})

interface ServedConsole extends TestService {
  /** URL without a slash at the end. */
  readonly url: string
}

/** Starts a service with the clock of the test and the built files. Call it within a test. */
async function serveConsole(options: TestServiceOptions = {}): Promise<ServedConsole> {
  const console = await readAssets(fileURLToPath(new URL('../../dist/console/', import.meta.url)))
  if (console === undefined) throw new Error('The files of the pages are not built: npm run build')
  const service = await createConsoleService({ console, port: 0, rendering: true, ...options })
  return { ...service, url: service.baseUrl }
}

/** Refusals, which the browser logs as errors. */
const REFUSALS = /^Failed to load resource: .* (401|404|422|503) /

/** Opens a page of the console. Errors of the browser, and requests to other origins, fail the test. */
async function openConsole(
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
async function openSignedIn(
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

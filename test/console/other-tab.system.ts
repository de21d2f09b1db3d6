/** Two tabs of one browser: they share a session, and one of them signs in as somebody else, or out. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../src/protocol/console.js'
import { describePages } from '../support/browser.js'
import { type Browser, createBrowser, createUser, FOX, PASSWORD } from '../support/console.js'
import {
  EMAIL,
  expectAccessible,
  holdAnswers,
  openSignedIn,
  type ServedConsole,
  serveConsole,
  signIn,
  stateWith,
} from '../support/console-page.js'

const OTHER = 'eve@example.com'

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })
const promptOf = (page: Page) => page.getByRole('textbox', { name: 'Prompt' })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first().click()
/** The sidebar has a button for it on every page, and the page of the account has another one. */
const signOut = (page: Page, part: 'banner' | 'main') =>
  page.getByRole(part).getByRole('button', { name: 'Sign out', exact: true }).click()
/** The navigation names its user. */
const belongsTo = (page: Page, email: string) => page.getByRole('link', { name: email }).waitFor()

/** What an account has, by its own user. */
async function dataOf(browser: Browser) {
  const { keys } = (await browser.get(CONSOLE_PATHS.keys)).body
  const { runs } = (await browser.get(CONSOLE_PATHS.runs)).body
  return { keys: keys.map(({ name }: { name: string }) => name), runs: runs.length }
}

const kept = async (page: Page) => String(await page.evaluate('JSON.stringify(sessionStorage)'))

/** Signs this browser in as somebody else, without a page that could tell the others. */
async function replaceSession(page: Page, service: ServedConsole, email: string): Promise<void> {
  const browser = createBrowser(service)
  await browser.post(AUTH_PATHS.signIn, { email, password: PASSWORD })
  await page.context().addCookies(stateWith(service.url, browser.cookie ?? '').cookies)
}

describePages('a tab whose browser has signed in as another user', (pages) => {
  it('creates no key in the other account, and reloads for its user', async () => {
    const service = await serveConsole()
    const [ada, eve] = [await createUser(service, EMAIL), await createUser(service, OTHER, 'acme')]
    const [before, others] = [await dataOf(ada), await dataOf(eve)]
    const { page } = await openSignedIn(pages, service, '#/keys')
    await press(page, 'New key')
    await page.getByLabel('Name').fill('of ada')

    await replaceSession(page, service, OTHER)
    await press(page, 'Create key')
    await belongsTo(page, OTHER)
    await page.getByText('No API keys', { exact: true }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await expectAccessible(page)
    expect([await dataOf(ada), await dataOf(eve)]).toEqual([before, others])

    await press(page, 'New key')
    await page.getByLabel('Name').fill('of eve')
    await press(page, 'Create key')
    await press(page, 'I have copied it')
    expect((await dataOf(eve)).keys).toEqual(['of eve'])
    expect(await dataOf(ada)).toEqual(before)
  })

  it('creates no run, and keeps the drafts of both users apart', async () => {
    const service = await serveConsole()
    const eve = await createUser(service, OTHER, 'acme')
    const { page } = await openSignedIn(pages, service, '#/new')
    const prompt = promptOf(page)
    await prompt.fill('a secret of ada')
    await replaceSession(page, service, OTHER)
    await press(page, 'Create run')
    await belongsTo(page, OTHER)
    await expect.poll(() => prompt.inputValue()).toBe('')
    expect((await dataOf(eve)).runs).toBe(0)
    await prompt.fill('a fox of eve')

    await replaceSession(page, service, EMAIL)
    await press(page, 'Create run')
    await belongsTo(page, EMAIL)
    await expect.poll(() => prompt.inputValue()).toBe('a secret of ada')
    expect((await dataOf(eve)).runs).toBe(0)
  })

  it('shows no run and no list of the previous user', async () => {
    const service = await serveConsole()
    const ada = await createUser(service, EMAIL)
    await createUser(service, OTHER, 'acme')
    const run = { ...FOX, input: { prompt: 'a secret of ada' } }
    const { id } = (await ada.post(CONSOLE_PATHS.runs, run)).body
    const { page } = await openSignedIn(pages, service, '#/runs?search=secret')
    await page.getByRole('link', { name: /a secret of ada/ }).click()
    await heading(page, 'Image').or(page.getByText(id).first()).first().waitFor()
    await replaceSession(page, service, OTHER)
    await page.getByRole('link', { name: 'API keys' }).click()
    await belongsTo(page, OTHER)
    await page.getByRole('link', { name: 'Runs', exact: true }).click()
    await page.getByText('No runs yet.').waitFor()
    expect(await page.getByText('a secret of ada').count()).toBe(0)
  })

  it('continues when the other tab signed in as the same user', async () => {
    const service = await serveConsole()
    const ada = await createUser(service, EMAIL)
    const { page } = await openSignedIn(pages, service, '#/keys')
    await press(page, 'New key')
    await page.getByLabel('Name').fill('of ada')
    await replaceSession(page, service, EMAIL)
    await press(page, 'Create key')
    await press(page, 'I have copied it')
    expect((await dataOf(ada)).keys).toContain('of ada')
  })
})

describePages('signing out in one tab', (pages) => {
  it('signs out the other tabs, and removes every draft', async () => {
    const service = await serveConsole()
    await createUser(service, OTHER, 'acme')
    const { page } = await openSignedIn(pages, service, '#/new')
    const tab = await page.context().newPage()
    for (const each of [page, tab]) {
      await each.goto(`${service.url}/#/new`)
      await promptOf(each).fill('a secret of ada')
      await expect.poll(() => kept(each)).toContain('a secret of ada')
    }
    await signOut(tab, 'banner')
    for (const each of [page, tab]) {
      await heading(each, 'Sign in').waitFor()
      expect(await kept(each)).toBe('{}')
    }
    await signIn(tab, EMAIL)
    await expect.poll(() => promptOf(tab).inputValue()).toBe('')
  })
})

describePages('signing out while something is created', (pages) => {
  it('leaves no late result on the page', async () => {
    const service = await serveConsole()
    const ada = await createUser(service, EMAIL)
    const { page } = await openSignedIn(pages, service, '#/new')
    const tab = await page.context().newPage()
    const { taken } = await holdAnswers(page, 'POST', '**/api/console/{runs,keys}')
    const leave = async () => {
      await tab.goto(`${service.url}/#/account`)
      await tab.reload()
      await signOut(tab, 'main')
      await heading(page, 'Sign in').waitFor()
    }
    await promptOf(page).fill('a fox')
    await press(page, 'Create run')
    await taken(0)
    await leave()
    await signIn(page, EMAIL)
    await expect.poll(() => promptOf(page).inputValue()).toBe('')
    expect(await page.getByText('a fox').count()).toBe(0)

    await page.getByRole('link', { name: 'API keys' }).click()
    await press(page, 'New key')
    await page.getByLabel('Name').fill('laptop')
    await press(page, 'Create key')
    await taken(1)
    await page.keyboard.press('Escape')
    await signOut(page, 'banner')
    await page.getByText('A key is still being created.').waitFor()
    await leave()
    await signIn(page, EMAIL)
    await belongsTo(page, EMAIL)
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect((await dataOf(ada)).keys).toContain('laptop')
  })

  it('stays final when a session check is answered later', async () => {
    const service = await serveConsole()
    await createUser(service, EMAIL)
    const { page } = await openSignedIn(pages, service, '#/new')
    await promptOf(page).fill('a secret of ada')
    await replaceSession(page, service, EMAIL)
    const tab = await page.context().newPage()
    await tab.goto(`${service.url}/#/account`)
    const { taken } = await holdAnswers(page, 'GET', '**/api/auth/session')
    await press(page, 'Create run')
    const checked = await taken(0)
    await signOut(tab, 'banner')
    // The page has been loaded again, and asks for itself.
    const asked = await taken(1)
    await asked.release()
    await heading(page, 'Sign in').waitFor()
    await page.evaluate(`{
      window.shown = []
      const look = () => window.shown.push(document.querySelector('h1')?.innerText)
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
    }`)
    await checked.lose().catch(() => undefined)
    expect(await page.evaluate('window.shown.filter((each) => each !== "Sign in")')).toEqual([])
    expect(await heading(page, 'Sign in').count()).toBe(1)
  })
})

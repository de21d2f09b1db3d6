/** Signing in and out on the page: passwords, links and sessions. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { AUTH_PATHS } from '../../src/protocol/console.js'
import { describePages } from '../support/browser.js'
import { addUser, createBrowser, createUser, PASSWORD } from '../support/console.js'
import {
  EMAIL,
  holdAnswers,
  openConsole,
  openSignedIn,
  serveConsole,
  sessionCookie,
  signIn,
} from '../support/console-page.js'

const useLink = (page: Page) => page.getByRole('button', { name: 'Sign in with this link' }).click()

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })

describePages('signing in to the console', (pages) => {
  it('requires email and password, and then shows the requested page', async () => {
    const service = await serveConsole()
    await createUser(service, EMAIL)
    const { page } = await openConsole(pages, service, '#/credits?kind=charge')
    await heading(page, 'Sign in').waitFor()
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Enter your email address.').waitFor()
    const email = page.getByLabel('Email')
    await page.locator('input[type=email]:focus').waitFor()
    const described = await email.getAttribute('aria-describedby')
    expect(await page.locator(`[id="${described}"]`).textContent()).toContain('Enter your email address.')

    await signIn(page, EMAIL, 'not the password')
    await page.getByText('Wrong email or password.').waitFor()
    await signIn(page)
    await heading(page, 'Credits').waitFor()
    expect(page.url()).toBe(`${service.url}/#/credits?kind=charge`)
    await page.reload()
    await heading(page, 'Credits').waitFor()
  })

  it('shows the page of a fragment that changes during start-up', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service)
    await page.addInitScript(`
      const onDrawn = new MutationObserver(() => {
        if (document.querySelector('.toasts') === null) return
        onDrawn.disconnect()
        location.hash = '#/keys'
      })
      onDrawn.observe(document, { childList: true, subtree: true })
    `)
    await page.reload()
    await heading(page, 'API keys').waitFor()
  })

  it('shows when to try again after too many attempts', async () => {
    const service = await serveConsole()
    const { page } = await openConsole(pages, service)
    const browser = createBrowser(service, { address: '127.0.0.1' })
    for (let attempt = 0; attempt < 5; attempt++)
      await browser.post(AUTH_PATHS.signIn, { email: EMAIL, password: `wrong ${attempt}` })
    await signIn(page)
    await page.getByText('Too many requests. Wait 60 seconds, then try again.').waitFor()
  })

  it('explains that passwords and links need https', async () => {
    const service = await serveConsole()
    const { page } = await openConsole(pages, service)
    for (const path of [AUTH_PATHS.signIn, AUTH_PATHS.link])
      await page.route(`**${path}`, (route) =>
        route.fulfill({ status: 403, json: { error: { code: 'https_required', message: 'https' } } }),
      )
    await signIn(page)
    await page.getByText('Passwords are not accepted over HTTP.').waitFor()
    await page.goto(`${service.url}/#/link/${await addUser(service, EMAIL)}`)
    await useLink(page)
    await page.getByText('This link was not used: open it with https://').waitFor()
    expect(await page.getByText('A link works once').count()).toBe(0)
    expect(await page.getByRole('button').count()).toBe(0)
  })

  it('works once with a link, which then offers to set a password', async () => {
    const service = await serveConsole()
    const token = await addUser(service, EMAIL)
    const { page, requests } = await openConsole(pages, service, `#/link/${token}`)
    await page.getByRole('button', { name: 'Sign in with this link' }).waitFor()
    expect(requests.filter((each) => each.includes('/api/'))).toEqual([`${service.url}${AUTH_PATHS.session}`])
    // It has the focus.
    await page.keyboard.press('Enter')
    await page.locator('h1:focus', { hasText: 'Set a password' }).waitFor()
    // The token stays neither in the address nor in the history.
    expect(page.url()).toBe(`${service.url}/#/link`)
    await page.reload()
    const field = page.getByLabel('New password')
    await field.fill('too short')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Enter at least 12 characters (now 9).').waitFor()
    // One character, which is 18 in the form that the service stores.
    await field.fill('\ufdfa')
    await page.getByText('Enter at least 12 characters (now 1).').waitFor()
    await field.fill(`${PASSWORD}\u0007`)
    await page.getByText('Remove the control characters').waitFor()
    await page.getByRole('button', { name: 'Show the password' }).click()
    expect(await field.getAttribute('type')).toBe('text')
    await page.getByRole('button', { name: 'Hide the password' }).click()
    expect(await field.getAttribute('type')).toBe('password')
    await field.fill(PASSWORD)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.locator('h1:focus', { hasText: 'Runs' }).waitFor()

    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(page)
    await heading(page, 'Runs').waitFor()

    const other = await openConsole(pages, service, `#/link/${token}`)
    await useLink(other.page)
    await other.page.getByText('A link works once').waitFor()
    // Its button has gone.
    await other.page.locator('h1:focus', { hasText: 'This link no longer works' }).waitFor()
    await other.page.getByRole('link', { name: 'Sign in with a password' }).click()
    await heading(other.page, 'Sign in').waitFor()
  })

  it('shows a message that leaves with its page and covers no button of the next one', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account')
    await page.setViewportSize({ width: 360, height: 640 })
    const message = page.getByText('Password set. Other sessions have ended.')
    const change = async () => {
      await page.getByLabel('Current password').fill(PASSWORD)
      await page.getByLabel('New password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Change password' }).click()
      await message.waitFor()
    }
    await change()
    await page.getByRole('button', { name: 'Dismiss' }).click()
    await page.locator('h1:focus', { hasText: 'Account' }).waitFor()
    await change()
    await page.getByRole('link', { name: 'New run' }).click()
    await heading(page, 'New run').waitFor()
    expect(await message.count()).toBe(0)
    await page.getByLabel('Prompt').fill('a fox')
    await page.getByRole('button', { name: 'Create run' }).click()
    await page.waitForURL(/#\/runs\/run_/)
  })

  it('uses a link of another user only when the signed-in user chooses it', async () => {
    const service = await serveConsole()
    const token = await addUser(service, 'eve@example.com', 'acme')
    const { page, requests } = await openSignedIn(pages, service, `#/link/${token}`)
    const choice = page.getByText(
      `You are already signed in as ${EMAIL}. You can keep this session, or sign in again as the user of the link`,
    )
    await choice.waitFor()
    await page.getByRole('button', { name: 'Keep this session' }).click()
    await heading(page, 'Runs').waitFor()
    await page.getByRole('link', { name: EMAIL }).waitFor()
    expect(requests.filter((each) => each.endsWith(AUTH_PATHS.link))).toEqual([])

    await page.goto(`${service.url}/#/link/${token}`)
    await choice.waitFor()
    await useLink(page)
    await page.getByText('You are signed in as eve@example.com.').waitFor()
    await page.getByRole('button', { name: 'Skip' }).click()
    await page.getByRole('link', { name: 'eve@example.com' }).waitFor()
    // It was wanted, so nothing is said about it.
    expect(await page.getByText('You are now signed in').count()).toBe(0)
    await page.getByRole('link', { name: 'Account' }).click()
    await page.getByText('You have no password yet.').waitFor()
    expect(await page.getByLabel('Current password').count()).toBe(0)
  })

  it('retries automatically when the service is back', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys', { ignored: /Failed to load resource/ })
    await page.getByRole('button', { name: 'Edit first' }).waitFor()
    await page.route('**/api/**', (route) => route.abort())
    await page.getByRole('link', { name: 'Credits' }).first().click()
    await page.getByText('The service does not answer.', { exact: true }).waitFor()
    await page.unroute('**/api/**')
    await page.getByRole('table', { name: 'Ledger' }).waitFor()
    expect(await page.getByText('The service does not answer.', { exact: true }).count()).toBe(0)
  })
})

describePages('signing out of the console', (pages) => {
  it('leaves no data on the page, nor behind the back button', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys')
    await page.getByRole('button', { name: 'Edit first' }).waitFor()
    await page.getByRole('link', { name: 'Account' }).click()
    await heading(page, 'Account').waitFor()
    await page.getByRole('banner').getByRole('button', { name: 'Sign out', exact: true }).click()
    await heading(page, 'Sign in').waitFor()
    await page.goBack()
    await heading(page, 'Sign in').waitFor()
    expect(await page.getByRole('table').count()).toBe(0)
    await page.goto('about:blank')
    await page.goBack()
    await heading(page, 'Sign in').waitFor()
    expect(await page.getByText(EMAIL).count()).toBe(0)
  })

  it('ends one session or all of them, and their pages show the sign-in form', async () => {
    const service = await serveConsole()
    const one = await openSignedIn(pages, service, '#/account')
    const other = await openSignedIn(pages, service, '#/keys')
    const rows = one.page.getByRole('table', { name: 'Sessions' }).locator('tbody tr')
    await one.page.reload()
    await rows.nth(1).waitFor()
    expect(await rows.filter({ hasText: 'This browser' }).count()).toBe(1)
    await one.page.getByRole('button', { name: 'End', exact: true }).click()
    await one.page.getByText('Session ended.').waitFor()
    expect(await rows.count()).toBe(1)
    await other.page.getByRole('link', { name: 'Account' }).click()
    await heading(other.page, 'Sign in').waitFor()

    await one.page.getByRole('button', { name: 'Sign out everywhere' }).click()
    await one.page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click()
    await heading(one.page, 'Sign in').waitFor()
  })

  it('shows the remaining sessions after two are ended at once', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account')
    for (let count = 0; count < 2; count++) await sessionCookie(service)
    const rows = page.getByRole('table', { name: 'Sessions' }).locator('tbody tr')
    await page.reload()
    await rows.nth(2).waitFor()
    const { taken } = await holdAnswers(page, 'DELETE', '**/api/console/sessions/*')
    const buttons = page.getByRole('button', { name: 'End', exact: true })
    await buttons.first().click()
    await buttons.last().click()
    const [one, other] = [await taken(0), await taken(1)]
    await other.release()
    await expect.poll(() => rows.count()).toBe(2)
    await one.release()
    await expect.poll(() => rows.count()).toBe(1)
    await rows.filter({ hasText: 'This browser' }).waitFor()
  })

  it('requires the current password for a new one', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account')
    await page.getByLabel('Current password').fill('something else')
    await page.getByLabel('New password').fill('another long password')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('This is not your current password.').waitFor()
    await page.getByLabel('Current password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Password set. Other sessions have ended.').waitFor()
    const browser = createBrowser(service)
    const signedIn = await browser.post(AUTH_PATHS.signIn, {
      email: EMAIL,
      password: 'another long password',
    })
    expect(signedIn.status).toBe(200)
  })
})

/** The page of users: an owner invites a member, who sees less, and is promoted and removed. */
import { expect, it } from 'vitest'
import { describePages } from '../support/browser.js'
import { openConsole, openSignedIn, serveConsole } from '../support/console-page.js'

const NAVIGATION = '.navigation li'

describePages('the users of an account', (pages) => {
  it('can be invited with a link shown once, promoted and removed by an owner', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/users')
    await page.getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByText('Enter an email address.').waitFor()
    await page.getByLabel('Email').fill('bob@example com')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByText('The email is not valid.').waitFor()
    await page.getByLabel('Email').fill('bob@example.com')
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = await page.getByRole('region', { name: 'link' }).textContent()
    await page.locator('.dialog-actions').getByRole('button', { name: 'Close' }).click()
    await page.getByRole('row', { name: 'bob@example.com' }).getByText('No password yet').waitFor()

    const { page: other } = await openConsole(pages, service)
    await other.goto(link ?? '')
    await other.getByRole('button', { name: 'Sign in with this link' }).click()
    await other.getByRole('button', { name: 'Skip' }).click()
    await other.locator(NAVIGATION).first().waitFor()
    expect(await other.locator(NAVIGATION).allTextContents()).toEqual([
      'Runs',
      'New run',
      'API keys',
      'Account',
    ])
    for (const name of ['credits', 'users']) {
      await other.goto(`${service.url}/#/${name}`)
      await other.getByRole('heading', { name: 'Page not found' }).waitFor()
    }
    await other.goto(`${service.url}/#/keys`)
    await other.getByText('No API keys').waitFor()
    expect(await other.getByRole('button', { name: 'Show log' }).count()).toBe(0)
    await other.getByRole('button', { name: 'New key' }).first().click()
    await other.getByLabel('Name').fill('ci')
    await other.getByRole('button', { name: 'Create key' }).click()
    await other.getByRole('button', { name: 'I have copied it' }).click()
    await page.goto(`${service.url}/#/keys`)
    await page.getByRole('button', { name: 'Show log' }).click()
    const logged = page.getByRole('table', { name: 'Key log' }).locator('tbody tr').first()
    await logged.getByText('bob@example.com').waitFor()
    expect(await logged.innerText()).toMatch(/ci.*Created/s)
    await page.goto(`${service.url}/#/users`)

    await page.getByRole('button', { name: 'Promote bob@example.com' }).click()
    await page.getByRole('button', { name: 'Promote user' }).click()
    await page.getByRole('button', { name: 'Demote bob@example.com' }).waitFor()
    await other.goto(`${service.url}/?promoted#/users`)
    await other.getByRole('button', { name: 'Invite' }).waitFor()
    await page.getByRole('button', { name: 'Remove bob@example.com' }).click()
    await page.getByRole('button', { name: 'Remove user' }).click()
    await page.getByText('bob@example.com').waitFor({ state: 'detached' })
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})

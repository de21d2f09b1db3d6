/** One person's way through the console of `rushes serve`, from its first start to signing out, beside `rushes` in other processes. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { createPlace, rushes, serve, start } from '../support/binary.js'
import { becomesTrue, describePages } from '../support/browser.js'
import { openConsole } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'

const goTo = (page: Page, name: string) =>
  page.getByRole('navigation').getByRole('link', { name, exact: true }).click()

describePages('the console of rushes serve', (pages) => {
  it('leads from the first start to signing out', async () => {
    const place = await serve(createPlace())
    const said: { console: string } = JSON.parse(place.process.printed.stdout)
    const { page } = await openConsole(pages, place, new URL(said.console).pathname)

    // The link of the first start, then a password.
    await page.getByRole('button', { name: 'Sign in with this link' }).click()
    await page.getByLabel('New password').fill('correct horse battery staple')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The password is set.').waitFor()

    // A run of another process appears, and then its picture.
    await goTo(page, 'Runs')
    const running = start(place, ['run', 'image', 'a paper boat on a lake', '--json'], { stdin: 'ignore' })
    await page.getByText('a paper boat on a lake').waitFor()
    const { id } = JSON.parse((await running.ended).stdout)
    await page.locator('.badge.succeeded').waitFor()
    await becomesTrue(page, 'document.querySelector(".thumb img")?.naturalWidth === 384')
    await page.getByRole('link', { name: /a paper boat on a lake/ }).click()
    await becomesTrue(page, 'document.querySelector("figure img")?.naturalWidth > 100')

    // A run of the page, with an image of this machine.
    await goTo(page, 'New run')
    await page.getByRole('textbox', { name: 'Prompt' }).fill('a red fox, as in the picture')
    await page
      .locator('#files')
      .setInputFiles({ name: 'fox.png', mimeType: 'image/png', buffer: ONE_PIXEL_PNG })
    await page.getByText('fox.png').waitFor()
    await page.getByRole('button', { name: 'Create', exact: true }).last().click()
    await becomesTrue(page, 'document.querySelector("figure img")?.naturalWidth > 100')

    // A key: created, and used.
    await goTo(page, 'API keys')
    await page.getByRole('link', { name: 'New key' }).click()
    await page.getByLabel('Name').fill('CI')
    await page.getByRole('button', { name: 'Create key' }).click()
    const key = (await page.locator('.secret').textContent()) ?? ''
    const withKey = place.with({ RUSHES_API_KEY: key })
    expect((await rushes(withKey, ['run', 'image', 'a bear'])).code).toBe(0)

    // The ledger has the runs of all of them.
    await goTo(page, 'Credits')
    await page.locator('.large', { hasText: '9,997' }).waitFor()
    await page.getByRole('link', { name: id }).waitFor()

    // Signed out.
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})

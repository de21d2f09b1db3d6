/** One person's way through the console of `rushes serve`, from its first start to signing out, beside `rushes` in other processes. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { createPlace, rushes, serve, start } from '../support/binary.js'
import { becomesTrue, describePages } from '../support/browser.js'
import { openConsole } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'

const PASSWORD = 'correct horse battery staple'

const goTo = (page: Page, name: string) =>
  page.getByRole('navigation').first().getByRole('link', { name, exact: true }).click()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const shows = (page: Page, text: string) => page.getByText(text, { exact: true }).first().waitFor()

describePages('the console of rushes serve', (pages) => {
  it('leads from the first start to signing out', async () => {
    const place = await serve(createPlace())
    const said: { console: string } = JSON.parse(place.process.printed.stdout)
    const { page } = await openConsole(pages, place, '', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()

    // The link of the first start, then a password.
    await page.goto(said.console)
    await press(page, 'Sign in with this link')
    await page.getByLabel('New password').fill(PASSWORD)
    await press(page, 'Set password')
    await shows(page, 'No runs yet.')

    // A run of another process appears, and then its picture.
    const running = start(place, ['run', 'image', 'a paper boat on a lake', '--json'], { stdin: 'ignore' })
    await shows(page, 'a paper boat on a lake')
    const { id } = JSON.parse((await running.ended).stdout)
    await shows(page, 'succeeded')
    await page.getByRole('link', { name: /a paper boat on a lake/ }).click()
    await becomesTrue(page, 'document.querySelector(".output img")?.naturalWidth > 100')
    expect(page.url()).toContain(id)

    // A run of the page, with an image that was dropped.
    await goTo(page, 'New run')
    // The page before has a card with the name "Prompt".
    await page.getByRole('textbox', { name: 'Prompt' }).fill('a red fox, as in the picture')
    await page.evaluate(`{
      const transfer = new DataTransfer()
      const bytes = Uint8Array.from(atob('${ONE_PIXEL_PNG.toString('base64')}'), (each) => each.charCodeAt(0))
      transfer.items.add(new File([bytes], 'fox.png'))
      document.querySelector('.drop-zone').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
    }`)
    await shows(page, 'fox.png')
    await press(page, 'Create run')
    await becomesTrue(page, 'document.querySelector(".output img")?.naturalWidth > 100')

    // In the list it is small, made by the process for that.
    await goTo(page, 'Runs')
    await becomesTrue(page, 'document.querySelector(".run-thumb img")?.naturalWidth === 384')

    // A key: created, copied, used.
    await goTo(page, 'API keys')
    await page.getByRole('button', { name: 'New key' }).first().click()
    await page.getByLabel('Name').fill('CI')
    await press(page, 'Create key')
    await press(page, 'Copy API key')
    const key = String(await page.evaluate('navigator.clipboard.readText()'))
    await press(page, 'I have copied it')
    const withKey = place.with({ RUSHES_API_KEY: key })
    expect((await rushes(withKey, ['run', 'image', 'a bear'])).code).toBe(0)

    // The ledger has the runs of all of them.
    await goTo(page, 'Credits')
    await shows(page, '9,997')
    await page.getByRole('img', { name: 'Spend per day. 3 credits, 3 runs in 30 days.' }).waitFor()
    await shows(page, id)

    // Signed out.
    await page.getByRole('banner').getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.getByText(id).count()).toBe(0)
    expect((await fetch(`${place.url}/api/console/credits`)).status).toBe(401)
  })
})

/** Every page of the console in both colour schemes and at three widths: axe finds nothing serious, and nothing is wider than the window. */
import { expect, it } from 'vitest'
import { describePages } from '../support/browser.js'
import { addUser } from '../support/console.js'
import {
  expectAccessible,
  expectFit,
  openConsole,
  openSignedIn,
  serveConsole,
} from '../support/console-page.js'
import { ask, ended } from '../support/service.js'

const LOGIN = `#/login?port=40123&challenge=${'a'.repeat(43)}&state=${'b'.repeat(22)}&name=ada-laptop`

/** The fragment, what is there when the page is drawn, and the button of a dialog. */
const PAGES: readonly (readonly [string, string, string?])[] = [
  ['#/keys', 'Rotate first'],
  ['#/keys', 'Rotate first', 'New key'],
  ['#/keys', 'Rotate first', 'Rotate first'],
  ['#/credits', 'Days'],
  ['#/account', 'Sign out everywhere'],
  ['#/runs', 'Runs'],
  ['#/new', 'New run'],
  ['#/nowhere', 'Go to Runs'],
  [LOGIN, 'Create the key'],
]

describePages('the pages of the console', (pages) => {
  it.each(['light', 'dark'] as const)('are accessible in %s', async (colorScheme) => {
    const service = await serveConsole()
    const { body } = await ask(service, 'POST', '/api/v1/runs', {
      model: 'rushes/preview-image',
      input: { prompt: 'a fox' },
    })
    await ended(service, body.id)

    const outside = await openConsole(pages, service, '', { colorScheme })
    await outside.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expectAccessible(outside.page)
    await outside.page.goto(`${service.url}/#/link/${await addUser(service, 'new@example.com')}`)
    await outside.page.getByRole('button', { name: 'Sign in with this link' }).waitFor()
    await expectAccessible(outside.page)
    await outside.page.keyboard.press('Enter')
    await outside.page.getByRole('button', { name: 'Skip' }).waitFor()
    await expectAccessible(outside.page)

    const { page } = await openSignedIn(pages, service, '', { colorScheme, reducedMotion: 'reduce' })
    for (const [fragment, drawn, button] of PAGES) {
      await page.goto(`${service.url}/${fragment}`)
      await page.reload()
      await page.getByText(drawn).or(page.getByLabel(drawn)).first().waitFor()
      await page.locator('.skeleton-lines').waitFor({ state: 'detached' })
      if (button !== undefined) await page.getByRole('button', { name: button }).first().click()
      await expectAccessible(page)
    }
  })

  it.each([360, 768, 1440])('fit a window of %s px', async (width) => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '', { viewport: { width, height: 800 } })
    for (const [fragment, drawn] of PAGES) {
      await page.goto(`${service.url}/${fragment}`)
      await page.getByText(drawn).or(page.getByLabel(drawn)).first().waitFor({ state: 'attached' })
      await expectFit(page)
    }
  })

  it('keep the chosen colours', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account', { colorScheme: 'light' })
    await page.getByRole('radio', { name: 'Dark' }).check({ force: true })
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme')
    expect(await scheme()).toBe('dark')
    await page.reload()
    await page.getByRole('radio', { name: 'Dark' }).waitFor({ state: 'attached' })
    expect(await scheme()).toBe('dark')
  })
})

/** Every page of the console in both colour schemes: axe finds nothing serious, and nothing is wider than a window of any size. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { describePages } from '../support/browser.js'
import { addUser } from '../support/console.js'
import { expectAccessible, expectFit, openConsole } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { FLUX } from './models.js'
import { giveFiles, servePage } from './service-with-page.js'

const SENT = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`

const press = (name: string) => (page: Page) => page.getByRole('button', { name }).first().click()

async function fillWrongly(page: Page): Promise<void> {
  await giveFiles(page, 'drop', [
    ['one.png', ONE_PIXEL_PNG],
    ['notes.png', Buffer.from('no picture')],
  ])
  await page.locator('.reference-name').waitFor()
  await press('Create run')(page)
  await page.getByText('Enter a value.').waitFor()
}

async function fillOtherModel(page: Page): Promise<void> {
  await page.getByLabel('Model').selectOption('acme/flux')
  await page.getByLabel('Steps').fill('70')
  await page.getByLabel('Control').fill('{')
  await press('Create run')(page)
  await page.getByText('This must be valid JSON.').waitFor()
}

/** The fragment, what is there when the page is drawn, and what is done then. */
const PAGES: readonly (readonly [fragment: string, drawn: string, act?: (page: Page) => Promise<void>])[] = [
  ['#/keys', 'Edit first'],
  ['#/keys', 'Edit first', press('New key')],
  ['#/credits', 'Days'],
  ['#/users', 'Invite'],
  ['#/users', 'Invite', press('Invite')],
  ['#/account', 'Sign out everywhere'],
  ['#/runs', 'a fox', press('Grid')],
  ['#/runs', 'a fox', press('List')],
  ['#/runs?search=unicorn', 'No runs match these filters.'],
  ['#/new', 'Create run'],
  ['#/new', 'Create run', fillWrongly],
  ['#/new', 'Create run', fillOtherModel],
  ['#/nowhere', 'Go to Runs'],
]

async function expectFitEverywhere(page: Page): Promise<void> {
  for (const width of [360, 650, 768, 1_440]) {
    await page.setViewportSize({ width, height: 800 })
    await expectFit(page)
  }
}

describePages('the pages of the console', (pages) => {
  it.each([
    ['light', 1_440],
    ['dark', 360],
  ] as const)(
    'pass axe in the %s scheme at %i pixels, and fit windows of every width',
    async (colorScheme, width) => {
      const service = await servePage(pages, {
        models: [PREVIEW_DOCUMENTS.image, PREVIEW_DOCUMENTS.video, FLUX].map((document) => ({ document })),
      })
      const look = { colorScheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' } as const
      const runs = [
        await service.create({ prompt: 'a fox', image_urls: [SENT, 'https://e.test/a?b=1&c=<d>'] }),
        await service.create({ prompt: 'a film' }, 'video'),
        await service.create({ prompt: 'FAIL' }),
        await service.create({ prompt: `WAIT for ${'a long prompt '.repeat(30)}` }),
      ].map(({ id }) => [`#/runs/${id}`, 'All runs'] as const)

      const { page: outside } = await openConsole(pages, service, '', look)
      await outside.getByRole('heading', { name: 'Sign in' }).waitFor()
      await expectAccessible(outside)
      await outside.goto(`${service.url}/#/link/${await addUser(service, 'new@example.com')}`)
      await outside.getByRole('button', { name: 'Sign in with this link' }).waitFor()
      await expectAccessible(outside)
      await outside.keyboard.press('Enter')
      await outside.getByRole('button', { name: 'Skip' }).waitFor()
      await expectAccessible(outside)

      const { page } = await service.open('', look)
      for (const [at, [fragment, drawn, act]] of [...PAGES, ...runs].entries()) {
        // Another query loads the page anew.
        await page.goto(`${service.url}/?${at}${fragment}`)
        await page.getByText(drawn).or(page.getByLabel(drawn)).first().waitFor()
        await page.locator('.skeleton-lines').waitFor({ state: 'detached' })
        await act?.(page)
        await expectAccessible(page)
        // Colours make no difference to the widths.
        if (colorScheme === 'light') {
          await expectFitEverywhere(page)
          await page.setViewportSize(look.viewport)
        }
      }
    },
  )

  it('keep the chosen colour scheme after a reload', async () => {
    const { open } = await servePage(pages)
    const { page } = await open('#/account', { colorScheme: 'light' })
    await page.getByRole('radio', { name: 'Dark' }).check({ force: true })
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme')
    expect(await scheme()).toBe('dark')
    await page.reload()
    await page.getByRole('radio', { name: 'Dark' }).waitFor({ state: 'attached' })
    expect(await scheme()).toBe('dark')
  })
})

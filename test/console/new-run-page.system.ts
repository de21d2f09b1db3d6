/** The form of a new run in a real browser, on the real service. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { CONSOLE_PATHS } from '../../src/protocol/console.js'
import type { ModelSchema } from '../../src/protocol/models.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { describePages } from '../support/browser.js'
import { withStore } from '../support/console.js'
import { holdAnswers, signIn } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { FLUX, UPSCALE } from './models.js'
import {
  afterPolls,
  createPaintingEngine,
  EMAIL,
  giveFiles,
  type PageService,
  servePage,
  XSS,
} from './service-with-page.js'

const prompt = (page: Page) => page.getByRole('textbox', { name: 'Prompt' })
/** The whole text beside the button. */
const cost = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor()
const create = (page: Page) => page.getByRole('button', { name: 'Create run' }).click()
const names = (page: Page) => page.locator('.reference-name bdi').allTextContents()
const runsOf = (service: PageService) =>
  withStore(service, async (store) => {
    const { runs } = await store.listRuns({ accountId: 1, limit: 100 })
    return await Promise.all(runs.map(async (run) => ({ ...run, ...(await store.findRun(run.id, 1)) })))
  })

const CREATES = `**${CONSOLE_PATHS.runs}`

const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true })

const addCredits = (service: PageService, amount: number) =>
  withStore(service, (store) =>
    store.addCredits({ account: 'default', amount, nowMs: Date.now() }, () => undefined),
  )

describePages('a new run', (pages) => {
  it('accepts images that are dropped, pasted, chosen or given as a URL', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    const { page } = await service.open('#/new', { hasClock: true })
    await prompt(page).fill('WAIT for a fox')
    await giveFiles(page, 'drop', [
      ['one.jpg', ONE_PIXEL_PNG],
      ['notes.png', Buffer.from(XSS)],
    ])
    await page.getByText('notes.png is not a PNG, JPEG, WebP, GIF or AVIF image.').waitFor()
    await giveFiles(page, 'paste', [['two.png', ONE_PIXEL_PNG]])
    await expect.poll(() => names(page)).toEqual(['one.jpg', 'two.png'])
    await page
      .getByLabel('Image files')
      .setInputFiles({ name: 'three.png', mimeType: 'image/png', buffer: ONE_PIXEL_PNG })
    await page.getByLabel('URL of an image').fill('fox.png')
    await page.getByRole('button', { name: 'Add URL' }).click()
    await page.getByText('"fox.png" is not a URL').waitFor()
    await page.getByLabel('URL of an image').fill('https://e.test/four.png')
    await page.keyboard.press('Enter')
    await expect.poll(() => names(page)).toHaveLength(4)
    await page.getByRole('button', { name: 'Move three.png up' }).click()
    await page.getByRole('button', { name: 'Remove two.png' }).click()
    await expect.poll(() => names(page)).toEqual(['one.jpg', 'three.png', 'https://e.test/four.png'])

    await page.getByText('16:9', { exact: true }).click()
    await page.getByText('high', { exact: true }).click()
    await cost(page, 'Cost 2 · Balance 10,000')
    await prompt(page).press('Control+Enter')
    await page.getByText('Rendering', { exact: true }).waitFor()
    // The reference images are loaded first.
    await expect.poll(() => engine.waiting).toBe(1)
    engine.finish()
    await afterPolls(page, () => page.locator('.output img').isVisible()).toBe(true)
    const [run] = await runsOf(service)
    expect(run).toMatchObject({ key: undefined, price: 2 })
    const sent = { content_type: 'image/png', bytes: ONE_PIXEL_PNG.byteLength, sha256: expect.any(String) }
    expect(run?.input).toEqual({
      ...{ prompt: 'WAIT for a fox', aspect_ratio: '16:9', quality: 'high' },
      image_urls: [sent, sent, 'https://e.test/four.png'],
    })
    await page.locator('.balance strong', { hasText: '9,998' }).waitFor()
    // The form is empty again.
    await page.getByRole('link', { name: 'New run' }).click()
    await expect.poll(() => prompt(page).inputValue()).toBe('')
    await cost(page, 'Cost 1 · Balance 9,998')
  })

  it('keeps the typed text over a reload and a lost session', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new', { ignored: /401/ })
    await page.locator('.radio', { hasText: 'Video' }).click()
    await prompt(page).fill('a film of a fox')
    await page.getByText('1080p').click()
    await page.reload()
    await expect.poll(() => prompt(page).inputValue()).toBe('a film of a fox')
    await cost(page, 'Cost 10 · Balance 10,000')
    await giveFiles(page, 'drop', [['one.png', ONE_PIXEL_PNG]])
    await expect.poll(() => names(page)).toEqual(['one.png'])

    await page.context().clearCookies()
    await create(page)
    await signIn(page, EMAIL)
    await expect.poll(() => prompt(page).inputValue()).toBe('a film of a fox')
    expect(await names(page)).toEqual(['one.png'])
    await create(page)
    await page.getByRole('heading', { level: 1, name: 'a film of a fox' }).waitFor()
    await page.getByRole('link', { name: 'rushes/preview-video' }).waitFor()
  })

  it('starts from an earlier run with every value that can be sent again', async () => {
    const service = await servePage(pages)
    const run = await service.create({
      ...{ prompt: 'a fox\nin two lines', aspect_ratio: '3:2', quality: 'high', seed: 7 },
      image_urls: ['data:image/png;base64,iVBORw0KGgo=', 'https://e.test/a.png'],
    })
    const { page } = await service.open(`#/runs/${run.id}`, { ignored: /401/ })
    await page.getByRole('link', { name: 'Run again with changes' }).click()
    await expect.poll(() => prompt(page).inputValue()).toBe('a fox\nin two lines')
    await page.getByText('1 reference image left out.').waitFor()
    await page.getByText('seed', { exact: true }).waitFor()
    expect(await names(page)).toEqual(['https://e.test/a.png'])
    await prompt(page).fill('a wolf')
    await page.getByText('basic', { exact: true }).click()
    // Neither a reload nor a session that ends loses the changes.
    await page.reload()
    await page.getByText('Your changes of before are kept.').waitFor()
    await page.context().clearCookies()
    await create(page)
    await signIn(page, EMAIL)
    await expect.poll(() => prompt(page).inputValue()).toBe('a wolf')
    await create(page)
    await page.getByRole('heading', { level: 1, name: 'a wolf' }).waitFor()
    expect((await runsOf(service))[0]?.input).toEqual({
      ...{ prompt: 'a wolf', aspect_ratio: '3:2', quality: 'basic' },
      image_urls: ['https://e.test/a.png'],
    })
  })

  it('shows its cost, field errors of the API at their fields, and the next step for other errors', async () => {
    const service = await servePage(pages)
    await addCredits(service, -9_999)
    const { page } = await service.open('#/new', { ignored: /status of (4|5)\d\d/ })
    await prompt(page).fill('x'.repeat(100_001))
    await create(page)
    await page.locator('.field-error', { hasText: 'has 100001 characters; the limit is 100000.' }).waitFor()
    expect(await prompt(page).getAttribute('aria-invalid')).toBe('true')

    await prompt(page).fill('a fox')
    await page.getByText('high', { exact: true }).click()
    await cost(page, 'Cost 2 · Balance 1: not enough')
    await page.getByText('basic', { exact: true }).click()
    await cost(page, 'Cost 1 · Balance 1')
    await addCredits(service, -1)
    await create(page)
    await page.getByText('Not enough credits.').waitFor()
    await page.getByText('rushes admin credits add default 100').waitFor()
    await addCredits(service, 100)

    await page.route(CREATES, (route) =>
      route.fulfill({ status: 503, json: { error: { code: 'overloaded', message: XSS } } }),
    )
    await create(page)
    await page.getByText('The run may exist.').waitFor()
    await page.unroute(CREATES)
    expect(await prompt(page).inputValue()).toBe('a fox')
    expect(await runsOf(service)).toEqual([])
  })

  it('says that the run may exist when the connection ended, and where to check', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new', { ignored: /ERR_FAILED|ERR_CONNECTION/ })
    await prompt(page).fill('lost on the way')
    const { taken } = await holdAnswers(page, 'POST', CREATES)
    await create(page)
    await (await taken(0)).lose()
    await page.getByText('The run may exist.').waitFor()
    await page.getByRole('link', { name: 'Show the runs of the console' }).click()
    await page.getByRole('row').filter({ hasText: 'lost on the way' }).waitFor()
    await page.unroute(CREATES)

    // Sent again, it is the same run, also after a reload.
    await page.goto(`${service.url}/#/new`)
    await page.reload()
    await page.getByText('you do not pay a second time').waitFor()
    await create(page)
    await page.getByRole('heading', { level: 1, name: 'lost on the way' }).waitFor()
    expect(await runsOf(service)).toHaveLength(1)
    await page.locator('.balance strong', { hasText: '9,999' }).waitFor()
    await link(page, 'New run').click()
    await expect.poll(() => prompt(page).inputValue()).toBe('')
    expect(await page.getByText('The run may exist.').count()).toBe(0)
  })

  it('keeps text that is typed while an earlier run is created, and says so', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new')
    await prompt(page).fill('a fox')
    const { taken } = await holdAnswers(page, 'POST', CREATES)
    await create(page)
    await prompt(page).fill('a wolf')
    await (await taken(0)).release()
    await page.unroute(CREATES)
    await page.getByText('Run created.').waitFor()
    expect(await prompt(page).inputValue()).toBe('a wolf')
    await create(page)
    await page.getByRole('heading', { level: 1, name: 'a wolf' }).waitFor()
    expect((await runsOf(service)).map(({ input }) => input?.prompt)).toEqual(['a wolf', 'a fox'])
  })

  it('creates one run, closes no dialog and keeps the balance correct when the user leaves the form meanwhile', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new')
    await prompt(page).fill('a fox')
    const { taken } = await holdAnswers(page, 'POST', CREATES)
    await create(page)
    const created = await taken(0)
    // Another one, by a program, is charged meanwhile.
    await service.create({ prompt: 'a boat' })
    await link(page, 'API keys').click()
    await page.getByRole('heading', { name: 'API keys' }).waitFor()
    await link(page, 'New run').click()
    await page.getByRole('button', { name: 'Creating' }).click()
    await prompt(page).press('Control+Enter')
    await link(page, 'API keys').click()
    await page.getByRole('button', { name: 'New key' }).first().click()
    await page.getByLabel('Name').fill('for tests')
    await created.release()
    await page.getByText('Run created.').waitFor()
    await page.locator('.balance strong', { hasText: '9,998' }).waitFor()
    expect(page.url()).toContain('#/keys')
    expect(await page.getByLabel('Name').inputValue()).toBe('for tests')
    expect((await runsOf(service)).map(({ input }) => input?.prompt)).toEqual(['a boat', 'a fox'])
  })

  it('shows a late failure on the page that is open by then', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new', { ignored: /ERR_FAILED|ERR_CONNECTION/ })
    await prompt(page).fill('a fox')
    const { taken } = await holdAnswers(page, 'POST', CREATES)
    await create(page)
    const created = await taken(0)
    await link(page, 'Account').click()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    await created.lose()
    await page.getByText('The run may exist.').waitFor()
    await link(page, 'Show the form').click()
    await page.getByText('you do not pay a second time').waitFor()
    expect(await prompt(page).inputValue()).toBe('a fox')
  })

  it('ignores Enter on a choice', async () => {
    const service = await servePage(pages)
    const { page } = await service.open('#/new')
    await prompt(page).fill('a fox')
    const choice = page.getByRole('radio', { name: '16:9' })
    expect(await page.locator('.ratio-box > span').first().boundingBox()).toMatchObject({
      width: 20,
      height: 20,
    })
    await choice.focus()
    await page.keyboard.press('Enter')
    await choice.press('Space')
    await page.keyboard.press('Enter')
    expect(await choice.isChecked()).toBe(true)
    expect(await page.getByRole('button', { name: 'Create run' }).count()).toBe(1)
    await page.keyboard.press('Control+Enter')
    await page.getByRole('link', { name: 'Run again with changes' }).waitFor()
    expect(await runsOf(service)).toHaveLength(1)
  })

  it('shows and checks the fields of the selected model, and keeps values that both models take', async () => {
    const models = [FLUX, UPSCALE, PREVIEW_DOCUMENTS.video].map((document) => ({ document }))
    const service = await servePage(pages, { models })
    const { page } = await service.open('#/new')
    await page.getByLabel('Steps').fill('70')
    await page.getByLabel('Lora').fill('fox')
    await page.getByLabel('Control').fill('{"weight":')
    await create(page)
    await page.getByText('Enter a value.').waitFor()
    await page.getByText('This must be a whole number from 1 to 50, not 70.').waitFor()
    await page.getByText('This must be valid JSON.').waitFor()
    expect(await prompt(page).evaluate('document.activeElement.name')).toBe('prompt')
    await prompt(page).fill('a fox')
    await page.getByLabel('Control').fill('{"weight": 2}')
    await page.getByLabel('Words').fill('x\ny')
    await page.getByLabel('Sampler').selectOption('s13')
    await page.locator('.radio', { hasText: 'On' }).click()
    await cost(page, 'Cost 0 · Balance 10,000')

    const model = page.getByLabel('Model')
    await model.selectOption('acme/upscale')
    await cost(page, 'Cost 1 · Balance 10,000')
    expect(await prompt(page).count()).toBe(0)
    await page.getByText('Enlarges an image', { exact: true }).waitFor()
    await page.locator('.radio', { hasText: '4' }).click()
    await cost(page, 'Cost 2 · Balance 10,000')
    await create(page)
    await page.locator('.field-error', { hasText: 'Enter a value.' }).waitFor()
    const urls = ['https://e.test/a', 'https://e.test/b']
    for (const url of urls) {
      await page.getByLabel('URL of an image').fill(url)
      await page.keyboard.press('Enter')
    }
    const tooMany = page.locator('.field-error', { hasText: 'at most 1, not 2' })
    await tooMany.waitFor()
    await create(page)
    expect(await tooMany.textContent()).toBe('This takes at most 1, not 2.')
    for (const url of urls) await page.getByRole('button', { name: `Remove ${url}` }).click()
    await model.selectOption('acme/flux')
    // A number that is not finished has no value in the browser.
    await page.getByLabel('Steps').pressSequentially('1e')
    await create(page)
    await page.getByText('This must be a number.').waitFor()
    await page.getByLabel('Steps').fill('30')
    await create(page)
    await page.getByRole('link', { name: 'Run again with changes' }).waitFor()
    const [run] = await runsOf(service)
    expect(run).toMatchObject({ model: 'acme/flux', price: 0 })
    expect(run?.input).toEqual({
      ...{ prompt: 'a fox', lora: 'fox', steps: 30, tiling: true, sampler: 's13' },
      ...{ words: ['x', 'y'], control: { weight: 2 } },
    })
    await page.locator('.code-block', { hasText: '--steps 30' }).waitFor()
  })

  it('falls back to the default model when the service no longer has the one of its form', async () => {
    const service = await servePage(pages, { models: [FLUX, UPSCALE].map((document) => ({ document })) })
    const run = await service.create({ prompt: 'a fox', lora: 'x', steps: 7, aspect_ratio: '3:2' })
    const { page } = await service.open(`#/runs/${run.id}`, { ignored: /status of 400/ })
    let models: object[] = [FLUX, UPSCALE]
    await page.route(`**${CONSOLE_PATHS.models}`, (route) => route.fulfill({ json: { models } }))
    await page.getByRole('link', { name: 'Run again with changes' }).click()
    await expect.poll(() => page.getByLabel('Steps').inputValue()).toBe('7')
    models = [PREVIEW_DOCUMENTS.image, UPSCALE]
    await page.route(CREATES, (route) =>
      route.fulfill({ status: 400, json: { error: { code: 'model_not_found', message: 'No.' } } }),
    )
    await create(page)
    await page.getByText('The service no longer has this model.').waitFor()
    await page.reload()
    await page.getByText('The service no longer has the model acme/flux.').waitFor()
    expect(await page.getByLabel('Steps').count()).toBe(0)
    expect(await prompt(page).inputValue()).toBe('a fox')

    // The page of the run has its input as JSON, and a filter lists its model.
    await page.getByRole('link', { name: 'Back to the run' }).click()
    await page.locator('.code-block', { hasText: "--input '{" }).waitFor()
    await page.getByRole('link', { name: 'acme/flux' }).click()
    await page.getByRole('row').filter({ hasText: 'a fox' }).waitFor()
    expect(await page.getByLabel('Model').inputValue()).toBe('acme/flux')
    await page.getByLabel('Model').selectOption('acme/upscale')
    await page.getByText('No runs match these filters.').waitFor()
    await page.getByLabel('Model').selectOption('image')
    await page.getByRole('row').filter({ hasText: 'a fox' }).waitFor()
  })

  it('keeps its page open when a file is dropped on a form without images', async () => {
    const { properties } = PREVIEW_DOCUMENTS.image.input
    const input = {
      ...PREVIEW_DOCUMENTS.image.input,
      properties: { prompt: properties.prompt },
    } as ModelSchema
    const document = { ...PREVIEW_DOCUMENTS.image, input }
    const { page } = await (await servePage(pages, { models: [{ document }] })).open('#/new')
    await prompt(page).fill('a fox')
    expect(await page.locator('.drop-zone').count()).toBe(0)
    const isPrevented = await page.evaluate(`['dragover', 'drop'].map((type) => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File(['x'], 'one.png'))
      return !document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
    })`)
    expect(isPrevented).toEqual([true, true])
  })
})

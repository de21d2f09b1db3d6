/** The page of one run in a real browser, on the real service. */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { openS3Storage } from '../../src/service/files/s3-storage.js'
import { becomesTrue, describePages } from '../support/browser.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { hasS3rver, inEnvironment, startS3Store } from '../support/s3-store.js'
import { runSql } from '../support/test-database.js'
import { afterPolls, createPaintingEngine, servePage, XSS } from './service-with-page.js'

const linkOf = ({ id }: { readonly id: string }) => `#/runs/${id}`
const ONE_URL = ['https://e.test/a?b=1&c=<d>']
const DATA = 'data:image/png;base64,iVBORw0KGgo='
const SENT = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`

describePages('the page of a run', (pages) => {
  it('updates live until the run has finished, and then stops polling', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine, concurrency: 1 })
    const first = await service.create({ prompt: 'WAIT one' })
    const run = await service.create({ prompt: 'WAIT two', quality: 'high', seed: 7 })
    const { page, requests } = await service.open(linkOf(run), { hasClock: true })
    await page.getByText('Waiting in the queue').waitFor()
    engine.finish()
    await afterPolls(page, () => page.getByText('Rendering', { exact: true }).isVisible()).toBe(true)
    await expect.poll(() => engine.waiting).toBe(1)
    engine.finish()
    await afterPolls(page, () => page.locator('.output img').isVisible()).toBe(true)
    await becomesTrue(page, 'document.querySelector(".output img")?.naturalWidth === 1')
    await page.getByText('1 × 1 · image/png').waitFor()
    expect(await page.getByRole('link', { name: 'Download' }).getAttribute('download')).toBe(
      `WAIT-two-${run.id}.png`,
    )
    expect(await page.locator('.timeline-label').allTextContents()).toEqual([
      'Queued',
      'Started',
      'Succeeded',
    ])
    const fields = await page.locator('.run-fields > div').allTextContents()
    expect(fields).toEqual([
      'Qualityhigh',
      'Seed7',
      'Aspect ratio1:1 default',
      'Price2 credits',
      'API keyfirst',
    ])
    // Nothing is asked for any more.
    const asked = requests.filter((each) => each.endsWith(run.id)).length
    await page.getByRole('link', { name: 'Older run (j)' }).click()
    await page.getByRole('heading', { level: 1, name: 'one' }).waitFor()
    expect(page.url()).toContain(first.id)
    expect(requests.filter((each) => each.endsWith(run.id)).length).toBe(asked)
  })

  it('keeps polling when a proxy answers instead of the service, and shows a notice', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    const run = await service.create({ prompt: 'WAIT for a fox' })
    const { page } = await service.open(linkOf(run), { hasClock: true, ignored: /40[34]|502/ })
    await page.getByText('Rendering', { exact: true }).waitFor()
    for (const status of [404, 403, 502]) {
      await page.route(`**/${run.id}`, (route) => route.fulfill({ status, body: '<h1>proxy</h1>' }))
      const notice = page.getByText(`invalid response (${status})`)
      await afterPolls(page, () => notice.isVisible()).toBe(true)
      await page.getByText('Live updates are interrupted. Trying again.').waitFor()
      await page.unroute(`**/${run.id}`)
      await afterPolls(page, () => notice.isVisible()).toBe(false)
    }
    engine.finish()
    await afterPolls(page, () => page.locator('.output img').isVisible()).toBe(true)
  })

  it('aborts a request that is never answered, and retries automatically', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    const run = await service.create({ prompt: 'WAIT for a fox' })
    const { page } = await service.open(linkOf(run), { hasClock: true, ignored: /ERR_FAILED/ })
    await page.getByText('Rendering', { exact: true }).waitFor()
    const api = '**/api/**'
    await page.route(api, () => undefined)
    const banner = page.locator('.toasts').getByText('The service does not answer.')
    await afterPolls(page, () => banner.isVisible()).toBe(true)
    engine.finish()
    await page.unroute(api)
    await afterPolls(page, () => page.locator('.output img').isVisible()).toBe(true)
    await afterPolls(page, () => banner.isVisible()).toBe(false)
    // Nothing is asked for any more here: the banner itself finds out that the service is back.
    await page.route(api, (route) => route.abort())
    await page.getByRole('button', { name: 'Sign out' }).click()
    await banner.waitFor()
    await page.unroute(api)
    await afterPolls(page, () => banner.isVisible()).toBe(false)
  })

  it('plays its video, and seeks in it', async () => {
    const service = await servePage(pages)
    const run = await service.create({ prompt: 'a film', duration: '10' }, 'video')
    const { page } = await service.open(linkOf(run))
    await becomesTrue(page, 'document.querySelector(".output video")?.readyState >= 2')
    await page.getByText('64 × 32 · video/mp4').waitFor()
    await page.evaluate(
      'const video = document.querySelector(".output video"); video.muted = true; video.play()',
    )
    await becomesTrue(page, 'document.querySelector(".output video").currentTime > 0.1')
    await page.evaluate('document.querySelector(".output video").currentTime = 3')
    await becomesTrue(
      page,
      '!document.querySelector(".output video").seeking && document.querySelector(".output video").currentTime >= 3',
    )
    expect(await page.locator('.output video').getAttribute('controls')).not.toBeNull()
  })

  it('downloads a file that the browser cannot show', async () => {
    const service = await servePage(pages, {
      engine: createInstantEngine({ bytes: Buffer.from('no picture') }),
    })
    const run = await service.create({ prompt: 'a fox' })
    const { page } = await service.open(linkOf(run))
    await page.getByText('The file could not be shown.').waitFor()
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download' }).click()
    expect(readFileSync(await (await downloading).path(), 'utf8')).toBe('no picture')
  })

  it('offers the download of a film that the browser cannot play', async () => {
    const service = await servePage(pages, {
      engine: createInstantEngine({
        files: ['film.mp4'],
        contentType: 'video/mp4',
        bytes: Buffer.from('no film'),
      }),
    })
    const run = await service.create({ prompt: 'a film' }, 'video')
    const { page } = await service.open(linkOf(run))
    await page.getByText('This browser cannot play the file. Download it.').waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Download' }).waitFor()
  })

  it.skipIf(!hasS3rver)('stays open while a file is downloaded from a bucket', async () => {
    const store = await startS3Store()
    inEnvironment(store.env)
    const storage = await openS3Storage({
      url: `s3://${store.bucket}/team`,
      ...{ env: process.env, clock: systemClock, warn: () => {} },
    })
    const service = await servePage(pages, { storage })
    const run = await service.create({ prompt: 'a fox', image_urls: [SENT] })
    const { page } = await service.open(linkOf(run), { elsewhere: store.endpoint })
    await becomesTrue(page, 'document.querySelector(".output img")?.naturalWidth === 1')
    await becomesTrue(page, 'document.querySelector(".run-sources img")?.naturalWidth === 1')
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download' }).click()
    const download = await downloading
    expect(download.suggestedFilename()).toBe(`a-fox-${run.id}.png`)
    expect(readFileSync(await download.path())).toEqual(ONE_PIXEL_PNG)
    expect(page.url()).toBe(`${service.url}/${linkOf(run)}`)
    await page.getByRole('link', { name: 'Download' }).waitFor()
  })

  it('shows that a file was removed, and offers no download', async () => {
    const service = await servePage(pages)
    const run = await service.create({ prompt: 'a fox' })
    const outputs = join(service.dataFolder, 'outputs')
    for (const name of readdirSync(outputs)) rmSync(join(outputs, name), { recursive: true })
    const { page } = await service.open(linkOf(run), { ignored: /410/ })
    await page.getByText('This file was removed.').waitFor()
    expect(await page.getByRole('link', { name: 'Download' }).count()).toBe(0)
  })

  it('shows the commands that create it again, and its JSON, to copy', async () => {
    const service = await servePage(pages)
    const run = await service.create({ prompt: "it's a fox", image_urls: [DATA, ...ONE_URL] })
    const { page } = await service.open(linkOf(run), { permissions: ['clipboard-read', 'clipboard-write'] })
    const code = page.locator('.code-block code')
    const format = (name: string) => page.getByRole('radio', { name })
    await expect.poll(() => code.textContent()).toContain(`rushes run image 'it'\\''s a fox'`)
    expect(await code.textContent()).toContain(`--base-url ${service.url}`)
    await page.getByRole('button', { name: 'Copy rushes command' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await code.textContent())
    await format('rushes').press('ArrowRight')
    await expect.poll(() => code.textContent()).toContain('data: URL of image-1.png')
    await format('Node.js').check({ force: true })
    await expect.poll(() => code.textContent()).toContain("readFile } from 'node:fs/promises'")
    await format('JSON').check({ force: true })
    const json = JSON.parse((await code.textContent()) ?? '')
    expect(json).toMatchObject({ id: run.id, input: { prompt: "it's a fox" } })
  })

  it('shows the images that were sent with it, and links to those of other hosts', async () => {
    const service = await servePage(pages)
    const { id } = await service.create({ prompt: 'a fox' })
    const { page: first } = await service.open(`#/runs/${id}`)
    const output = await first
      .locator('.output img')
      .evaluate((image) => (image as never as { src: string }).src)
    const run = await service.create({ prompt: 'a wolf', image_urls: [SENT, output, ...ONE_URL] })
    const { page } = await service.open(linkOf(run))
    const widths = "[...document.querySelectorAll('.run-sources img')].map((image) => image.naturalWidth)"
    await expect.poll(() => page.evaluate(widths)).toEqual([1, 1])
    expect(await page.locator('.run-sources li').allTextContents()).toEqual([
      `${ONE_PIXEL_PNG.length} B`,
      'picture.png',
      'e.test/a?b=1&c=<d>External link',
    ])
    const link = page.getByRole('link', { name: 'External link' })
    expect([await link.getAttribute('href'), await link.getAttribute('rel')]).toEqual([
      ONE_URL[0],
      'noreferrer noopener',
    ])
    const inputs = join(service.dataFolder, 'inputs')
    for (const name of readdirSync(inputs)) rmSync(join(inputs, name), { recursive: true })
    // Another browser, whose cache has no images.
    const { page: later } = await service.open(linkOf(run), { ignored: /410/ })
    await later.getByText('No longer stored').waitFor()
  })

  it('shows how long the run has been rendering', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    const run = await service.create({ prompt: 'WAIT for a fox' })
    await expect.poll(() => engine.waiting).toBe(1)
    const { page } = await service.open(linkOf(run), { hasClock: true })
    const [rendering] = await runSql(service, `SELECT started_at FROM runs WHERE id = '${run.id}'`)
    await page.clock.setFixedTime(Number(rendering?.started_at) + 5_000)
    await expect.poll(() => page.getByRole('timer').textContent()).toBe('· 5 s')
  })

  it('shows why the run failed, and every foreign string as text', async () => {
    const service = await servePage(pages)
    const run = await service.create({ prompt: `FAIL ${XSS} \u202egnp.exe`, [`x${XSS}`]: XSS })
    const { page } = await service.open(linkOf(run), { ignored: /404/ })
    const notice = page.getByRole('alert')
    await notice.getByText('Its price was refunded.').waitFor()
    expect(await notice.textContent()).toContain(XSS)
    expect(await notice.textContent()).toContain('render_failed')
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(`FAIL ${XSS} gnp.exe`)
    expect(await page.title()).toBe(`FAIL ${XSS} gnp.exe · rushes`)
    expect(await page.locator('.run-fields').textContent()).toContain(XSS)
    for (const name of ['curl', 'Node.js', 'JSON']) {
      await page.getByRole('radio', { name }).check({ force: true })
      await expect.poll(() => page.locator('.code-block').textContent()).toContain('onerror=alert(1)')
      expect(await page.locator('.code-block').textContent()).not.toContain('\u202e')
    }
    expect(await page.locator('img').count()).toBe(0)

    await page.goto(`${service.url}/#/runs/${encodeURIComponent(XSS)}`)
    await page.getByText('No such run').waitFor()
    expect(await page.locator('main').textContent()).toContain(XSS)

    await runSql(service, "UPDATE runs SET failure = replace(failure, 'render_failed', 'not_recorded')")
    await page.goto(`${service.url}/${linkOf(run)}`)
    await notice.getByText('Its price was refunded.').waitFor()
    expect(await notice.textContent()).toContain('its files were not kept')
    expect(await page.locator('.run-fields').textContent()).toContain('1 credit, refunded')
  })
})

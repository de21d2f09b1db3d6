/** The list of runs in a real browser, on the real service. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { openDatabase } from '../../src/host/database.js'
import { namedModels } from '../../src/service/models/served-model.js'
import { SQLITE_SCHEMA } from '../../src/service/store/sqlite/database.js'
import { becomesTrue, describePages } from '../support/browser.js'
import { withStore } from '../support/console.js'
import { runSql } from '../support/test-database.js'
import { afterPolls, createPaintingEngine, type PageService, servePage, XSS } from './service-with-page.js'

const rowOf = (page: Page, prompt: string) => page.getByRole('row').filter({ hasText: prompt })
const prompts = (page: Page) => page.locator('.run-prompt a').allTextContents()
const top = (page: Page, prompt: string) =>
  rowOf(page, prompt).evaluate(
    (row) => (row as never as { getBoundingClientRect(): { top: number } }).getBoundingClientRect().top,
  )

interface ShownGrid {
  readonly width: number
  readonly tiles: readonly { readonly run: string; readonly left: number; readonly width: number }[]
  /** Runs whose tile is wider than the grid or outside it. */
  readonly outside: readonly string[]
}

/** Where the tiles of the grid are, in pixels from its left edge. The width of the grid is rounded to whole pixels. */
const gridOf = (page: Page) =>
  page.evaluate<ShownGrid>(`(() => {
    const list = document.querySelector('.run-tiles')
    const start = list.getBoundingClientRect().left
    const tiles = [...list.querySelectorAll('.run-tile')].map((tile) => {
      const { left, width } = tile.getBoundingClientRect()
      return { run: tile.dataset.run, left: left - start, width }
    })
    const outside = tiles.filter(({ left, width }) => left < 0 || left + width > list.clientWidth)
    return { width: list.clientWidth, tiles, outside: outside.map(({ run }) => run) }
  })()`)

/** Finished runs as one transaction, since creating them one by one takes a minute. */
function fill({ dataFolder }: PageService, count: number): void {
  const database = openDatabase({ path: `${dataFolder}/service.db`, migrations: [SQLITE_SCHEMA] })
  database.run(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
     INSERT INTO runs (id, account_id, model, kind, input, prompt, price, status, turn, created_at, started_at, finished_at)
     SELECT 'run_' || n, 1, 'rushes/preview-image', 'image', json_object('prompt', 'fox ' || n), 'fox ' || n, 0, 'failed', 0, 1760000000000 + n * 1000, 1760000000000 + n * 1000, 1760000000500 + n * 1000
     FROM numbers`,
    count,
  )
  database.close()
}

describePages('the list of runs', (pages) => {
  it('shows a command before the first run, and then each new run live', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    const { page } = await service.open('#/runs', { hasClock: true })
    const shown = (prompt: string, status: string) =>
      afterPolls(page, () => rowOf(page, prompt).getByText(status).isVisible()).toBe(true)
    await page.getByText('No runs yet.').waitFor()
    expect(await page.locator('.code-block code').textContent()).toBe('rushes run image "a fox"')

    await service.create({ prompt: 'WAIT for the fox' })
    await shown('WAIT for the fox', 'processing')
    expect(await page.locator('.run-thumb img').count()).toBe(0)
    await expect.poll(() => engine.waiting).toBe(1)
    engine.finish()
    await shown('WAIT for the fox', 'succeeded')
    await becomesTrue(page, 'document.querySelector(".run-thumb img")?.naturalWidth === 1')

    await service.create({ prompt: 'FAIL' })
    await shown('cannot draw FAIL', 'failed')
    expect(await page.locator('.run-price').allTextContents()).toEqual(['Refunded', '1 credit'])
    expect(await prompts(page)).toEqual(['FAIL', 'WAIT for the fox'])
    expect(await page.getByRole('table', { name: 'Runs' }).getByRole('row').count()).toBe(3)
  })

  it('keeps its filters in the address, over a reload and the back button', async () => {
    const service = await servePage(pages)
    await service.create({ prompt: 'a red fox' })
    await service.create({ prompt: 'a blue whale' }, 'video')
    await service.create({ prompt: 'FAIL fox' })
    const { page } = await service.open('#/runs')
    await expect.poll(() => prompts(page)).toEqual(['FAIL fox', 'a blue whale', 'a red fox'])

    await page.getByLabel('Model').selectOption('image')
    await expect.poll(() => prompts(page)).toEqual(['FAIL fox', 'a red fox'])
    await page.getByLabel('Status').selectOption('succeeded')
    await expect.poll(() => prompts(page)).toEqual(['a red fox'])
    expect(new URL(page.url()).hash).toBe('#/runs?status=succeeded&kind=image')

    await page.reload()
    await expect.poll(() => prompts(page)).toEqual(['a red fox'])
    expect(await page.getByLabel('Model').inputValue()).toBe('image')
    await page.goBack()
    await expect.poll(() => prompts(page)).toEqual(['FAIL fox', 'a red fox'])
    expect(await page.getByLabel('Status').inputValue()).toBe('')

    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('searchbox').fill('BLUE')
    await expect.poll(() => prompts(page)).toEqual(['a blue whale'])
    expect(new URL(page.url()).hash).toBe('#/runs?search=BLUE')
    await page.getByRole('searchbox').fill('unicorn')
    await page.getByText('No runs match these filters.').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await expect.poll(() => prompts(page)).toHaveLength(3)
    expect(await page.getByRole('searchbox').inputValue()).toBe('')

    await page.getByLabel('Key', { exact: true }).selectOption('console')
    await page.getByText('No runs match these filters.').waitFor()
    await page.getByLabel('Key', { exact: true }).selectOption({ label: 'first' })
    await expect.poll(() => prompts(page)).toHaveLength(3)
  })

  it('adds and removes runs live as they match a filter', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    await service.create({ prompt: 'WAIT one' })
    const { page } = await service.open('#/runs?status=processing', { hasClock: true })
    const { page: other } = await service.open('#/runs?status=succeeded&search=one', { hasClock: true })
    await afterPolls(page, () => prompts(page)).toEqual(['WAIT one'])
    await other.getByText('No runs match these filters.').waitFor()
    engine.finish()
    await afterPolls(page, () => page.getByText('No runs match these filters.').isVisible()).toBe(true)
    await afterPolls(other, () => prompts(other)).toEqual(['WAIT one'])
    await service.create({ prompt: 'another' })
    await service.create({ prompt: 'number one' })
    await afterPolls(other, () => prompts(other)).toEqual(['number one', 'WAIT one'])
  })

  it('works with the keyboard, and keeps its position when the user goes back', async () => {
    const service = await servePage(pages)
    for (const prompt of ['one', 'two', 'three']) await service.create({ prompt })
    const { page } = await service.open('#/runs')
    await expect.poll(() => prompts(page)).toEqual(['three', 'two', 'one'])
    const focused = () => page.evaluate('document.activeElement?.textContent')
    for (const [key, prompt] of [
      ['j', 'three'],
      ['j', 'two'],
      ['j', 'one'],
      ['j', 'one'],
      ['k', 'two'],
    ] as const) {
      await page.keyboard.press(key)
      await expect.poll(focused).toBe(prompt)
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'two' }).waitFor()
    await page.keyboard.press('j')
    await page.getByRole('heading', { level: 1, name: 'one' }).waitFor()
    await page.getByRole('link', { name: 'Newer run (k)' }).waitFor()
    await page.keyboard.press('k')
    await page.getByRole('heading', { level: 1, name: 'two' }).waitFor()
    await page.getByRole('link', { name: 'All runs' }).click()
    await expect.poll(() => prompts(page)).toEqual(['three', 'two', 'one'])
  })

  it('can be shown as a live grid with keyboard control, and remembers that choice', async () => {
    const engine = createPaintingEngine()
    const service = await servePage(pages, { engine })
    fill(service, 150)
    const { page } = await service.open('#/runs', { hasClock: true })
    await rowOf(page, 'fox 150').waitFor()
    await page.getByRole('button', { name: 'Grid' }).click()
    const tile = (prompt: string) => page.getByRole('listitem').filter({ hasText: prompt })
    await tile('fox 150').waitFor()
    expect(await page.getByRole('table').count()).toBe(0)
    const focused = () => page.evaluate('document.activeElement?.textContent')
    for (const [key, number] of [
      ['j', 150],
      ['j', 149],
      ['k', 150],
    ] as const) {
      await page.keyboard.press(key)
      await expect.poll(focused).toBe(`fox ${number}`)
    }

    const run = await service.create({ prompt: 'WAIT for a wolf' })
    await afterPolls(page, () => tile('WAIT for a wolf').getByText('processing').isVisible()).toBe(true)
    await expect.poll(() => engine.waiting).toBe(1)
    engine.finish()
    await afterPolls(page, () => tile('WAIT for a wolf').getByText('succeeded').isVisible()).toBe(true)

    await page.evaluate('scrollTo(0, 1e9)')
    await tile('fox 1').last().waitFor()
    await page.reload()
    await tile('WAIT for a wolf').waitFor()
    expect(await page.getByRole('button', { name: 'Grid' }).getAttribute('aria-pressed')).toBe('true')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'WAIT for a wolf' }).waitFor()
    expect(page.url()).toContain(run.id)
  })

  it('fits the tiles of its grid to a window that becomes narrow and wide again', async () => {
    const service = await servePage(pages)
    fill(service, 60)
    const { page } = await service.open('#/runs')
    await rowOf(page, 'fox 60').waitFor()
    await page.getByRole('button', { name: 'Grid' }).click()
    await page.getByRole('listitem').filter({ hasText: 'fox 60' }).waitFor()
    const wide = await gridOf(page)
    expect(wide.tiles.length).toBeGreaterThan(10)
    expect(wide.outside).toEqual([])

    await page.setViewportSize({ width: 390, height: 800 })
    const narrow = async () => {
      const { width, tiles, outside } = await gridOf(page)
      return { isNarrow: width < 390, tileWidths: new Set(tiles.map((tile) => tile.width)).size, outside }
    }
    await expect.poll(narrow).toEqual({ isNarrow: true, tileWidths: 1, outside: [] })

    await page.setViewportSize({ width: 1_280, height: 800 })
    await expect.poll(() => gridOf(page)).toEqual(wide)
  })

  it('shows the first frame of a video, and plays it only under the pointer', async () => {
    const service = await servePage(pages)
    await service.create({ prompt: 'a film' }, 'video')
    const paused = 'document.querySelector(".run-thumb video")?.paused'
    const { page } = await service.open('#/runs')
    await becomesTrue(page, 'document.querySelector(".run-thumb video")?.readyState >= 2')
    expect(await page.evaluate(`[${paused}, document.querySelector("video").muted]`)).toEqual([true, true])
    await rowOf(page, 'a film').hover()
    await becomesTrue(page, `${paused} === false`)
    await page.getByRole('heading', { name: 'Runs' }).hover()
    await becomesTrue(page, `${paused} === true`)
    await page.keyboard.press('j')
    await becomesTrue(page, `${paused} === false`)

    const still = await service.open('#/runs', { reducedMotion: 'reduce' })
    await becomesTrue(still.page, 'document.querySelector(".run-thumb video")?.readyState >= 2')
    await rowOf(still.page, 'a film').hover()
    await still.page.keyboard.press('j')
    await expect.poll(() => still.page.evaluate('document.activeElement?.textContent')).toBe('a film')
    expect(await still.page.evaluate(paused)).toBe(true)
  })

  it('keeps its scroll position when runs arrive', async () => {
    const service = await servePage(pages)
    fill(service, 150)
    const { page } = await service.open('#/runs', { hasClock: true })
    await rowOf(page, 'fox 150').waitFor()
    await page.evaluate('scrollTo(0, 3000)')
    await rowOf(page, 'fox 105').waitFor()
    const before = await top(page, 'fox 105')
    for (const prompt of ['first', 'second', 'third']) await service.create({ prompt })
    const button = page.getByRole('button', { name: '3 new runs' })
    await afterPolls(page, () => button.isVisible()).toBe(true)
    expect(await top(page, 'fox 105')).toBe(before)
    await button.click()
    await rowOf(page, 'third').waitFor()
    await button.waitFor({ state: 'detached' })

    await page.evaluate('scrollTo(0, 4000)')
    await rowOf(page, 'fox 90').waitFor()
    const place = await page.evaluate('scrollY')
    await page.getByRole('link', { name: 'fox 90', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'fox 90' }).waitFor()
    expect(await page.evaluate('scrollY')).toBe(0)
    await page.goBack()
    await rowOf(page, 'fox 90').waitFor()
    expect(await page.evaluate('scrollY')).toBe(place)
  })

  it('loads older runs, at most 100 a request, with its button and near its end', async () => {
    const service = await servePage(pages)
    fill(service, 350)
    const { page, requests } = await service.open('#/runs')
    await rowOf(page, 'fox 350').waitFor()
    const rows = page.locator('.run-row')
    expect(await rows.count()).toBe(100)
    // Without the pointer, which would scroll to it.
    await page.getByRole('button', { name: 'Older' }).dispatchEvent('click')
    await expect.poll(() => rows.count()).toBe(200)
    for (const count of [300, 350]) {
      await page.evaluate('scrollTo(0, 1e9)')
      await expect.poll(() => rows.count()).toBe(count)
    }
    await page.getByRole('button', { name: 'Older' }).waitFor({ state: 'detached' })
    expect(requests.filter((each) => each.includes('before=')).length).toBe(3)
    expect(await prompts(page)).toEqual(Array.from({ length: 350 }, (_, at) => `fox ${350 - at}`))
  })

  it('loads older runs near its end also when the browser reports several scrolls at once', async () => {
    const service = await servePage(pages)
    fill(service, 250)
    const { page } = await service.open('#/runs', {
      initScript: `window.IntersectionObserver = class {
        constructor(report) { this.report = report }
        observe() { setTimeout(() => this.report([{ isIntersecting: false }, { isIntersecting: true }]), 100) }
        disconnect() {}
      }`,
    })
    await expect.poll(() => page.locator('.run-row').count()).toBe(250)
  })

  it('continues a search that has read many runs without a match', async () => {
    const service = await servePage(pages)
    await service.create({ prompt: 'a needle' })
    fill(service, 4_500)
    const { page, requests } = await service.open('#/runs?search=needle')
    await rowOf(page, 'a needle').waitFor()
    expect(requests.filter((each) => each.includes('search=needle')).length).toBeGreaterThan(2)
    await page.getByLabel('Search in prompts').fill('no such run')
    await page.getByText('No runs match these filters.').waitFor()
  })

  it('cancels the selected runs separately, and shows the result', async () => {
    const service = await servePage(pages, { role: 'api' })
    for (const prompt of ['WAIT one', 'WAIT two', 'WAIT three']) await service.create({ prompt })
    const { page } = await service.open('#/runs')
    await page.getByRole('checkbox', { name: 'Select WAIT two' }).check()
    await page.getByText('1 run selected').waitFor()
    await page.getByRole('button', { name: 'Select all 3 unfinished runs' }).click()
    await page.getByRole('checkbox', { name: 'Select WAIT one' }).uncheck()
    await page.getByRole('button', { name: 'Cancel 2 runs' }).click()
    await page.getByRole('button', { name: 'Cancel runs' }).click()
    await page.getByText('Canceled 2 runs, 2 refunded.').waitFor()
    await rowOf(page, 'WAIT two').locator('.badge', { hasText: 'canceled' }).waitFor()
    expect(await page.locator('.run-price').allTextContents()).toEqual(['Refunded', 'Refunded', '1 credit'])
    expect(await page.getByRole('checkbox').count()).toBe(1)
    expect(await page.getByText('selected').count()).toBe(0)
  })

  it('shows hostile prompts, keys, models and errors as text', async () => {
    const service = await servePage(pages, {
      models: namedModels({ image: `acme/${XSS.replace(' ', '-')}` }),
    })
    await withStore(service, async (store) => {
      const keys = await store.listAccountKeys({ accountId: 1, limit: 100 })
      await store.changeKey(keys[0]?.id ?? 0, { name: `key ${XSS}` }, { nowMs: 0 })
    })
    await service.create({ prompt: `${XSS} \u202egnp.exe\u2066` })
    await service.create({ prompt: `FAIL ${XSS}` })
    await service.create({ prompt: 'without a key' })
    await runSql(service, "UPDATE runs SET key_id = NULL WHERE prompt = 'without a key'")
    const { page } = await service.open('#/runs')
    const row = rowOf(page, 'gnp.exe')
    await row.getByText('succeeded').waitFor()
    await rowOf(page, 'FAIL').getByText('failed').waitFor()
    expect(await prompts(page)).toEqual(['without a key', `FAIL ${XSS}`, `${XSS} gnp.exe`])
    expect(await row.locator('.run-key').textContent()).toBe(`key ${XSS}`)
    expect(await row.locator('.run-model').textContent()).toContain('<img-src')
    expect(await page.getByLabel('Key', { exact: true }).textContent()).toContain(XSS)
    expect(await rowOf(page, 'FAIL').locator('.run-error').textContent()).toContain(XSS)
    // A list of runs of one key does not repeat its name.
    await page.getByLabel('Key', { exact: true }).selectOption('console')
    await expect.poll(() => prompts(page)).toEqual(['without a key'])
    expect(await page.getByRole('columnheader', { name: 'Key' }).count()).toBe(0)
  })

  it('shows that the service does not answer, and recovers automatically', async () => {
    const service = await servePage(pages)
    await service.create({ prompt: 'a fox' })
    const { page } = await service.open('#/runs', { hasClock: true, ignored: /ERR_INTERNET_DISCONNECTED/ })
    await rowOf(page, 'a fox').waitFor()
    await page.context().setOffline(true)
    await afterPolls(page, () => page.getByText('The service does not answer.').isVisible()).toBe(true)
    await rowOf(page, 'a fox').waitFor()
    await service.create({ prompt: 'meanwhile' })
    await page.context().setOffline(false)
    await rowOf(page, 'meanwhile').waitFor()
    await page.getByText('The service does not answer.').waitFor({ state: 'detached' })
  })
})

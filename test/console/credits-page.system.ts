/** Ledger, chart and CSV on the page, against what the endpoints say. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { CONSOLE_PATHS, type EntriesPage, type Spend } from '../../src/protocol/console.js'
import { describePages } from '../support/browser.js'
import { type Browser, createUser } from '../support/console.js'
import { holdAnswers, openSignedIn, type ServedConsole, serveConsole } from '../support/console-page.js'
import { ask, ended } from '../support/service.js'
import { openStoreOf } from '../support/test-database.js'

const DAY_MS = 86_400_000

/** Creates runs on several days. */
async function createRuns(service: ServedConsole, days: number, perDay: number): Promise<void> {
  for (let day = 0; day < days; day++) {
    for (let run = 0; run < perDay; run++) {
      const input = { prompt: `day ${day}, run ${run}` }
      const { body } = await ask(service, 'POST', '/api/v1/runs', { model: 'rushes/preview-image', input })
      await ended(service, body.id)
    }
    service.clock.jump(DAY_MS)
  }
}

const textsOf = (page: Page, table: string): Promise<string[][]> =>
  page
    .getByRole('table', { name: table, includeHidden: true })
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')))

const entriesOf = async (browser: Browser, query = ''): Promise<EntriesPage> =>
  (await browser.get(`${CONSOLE_PATHS.credits}${query}`)).body

describePages('the credits page', (pages) => {
  it('shows the values of the endpoints in the ledger, the chart and the CSV', async () => {
    const service = await serveConsole()
    await createRuns(service, 3, 2)
    const reader = await createUser(service, 'ben@example.com')
    const { page } = await openSignedIn(pages, service, '#/credits')
    await page.getByRole('table', { name: 'Ledger' }).waitFor()

    const { entries, balance } = await entriesOf(reader)
    expect(entries).toHaveLength(7)
    const shown = await textsOf(page, 'Ledger')
    expect(shown.map(([, kind, run, key, amount]) => [kind, run, key, amount])).toEqual(
      entries.map(({ kind, run_id, key, amount }) => [
        kind === 'added' ? 'Added' : 'Charge',
        run_id ?? '–',
        key?.name ?? '–',
        amount < 0 ? `−${-amount}` : `+${amount.toLocaleString('en')}`,
      ]),
    )
    await page.getByRole('link', { name: `Balance ${balance.toLocaleString('en')} credits` }).waitFor()

    const { days }: Spend = (await reader.get(`${CONSOLE_PATHS.spend}?days=30`)).body
    const rows = await textsOf(page, 'Spend per day')
    expect(rows.map(([, credits, runs]) => [Number(credits), Number(runs)]).reverse()).toEqual(
      days.map(({ credits, runs }) => [credits, runs]),
    )
    expect(await page.locator('.chart-day').count()).toBe(30)
    expect(await page.locator('.chart-bar').count()).toBe(3)
    await page.getByRole('img', { name: 'Spend per day. 6 credits, 6 runs in 30 days.' }).waitFor()
    await page.getByLabel('Days', { exact: true }).selectOption('7')
    await expect.poll(() => page.locator('.chart-day').count()).toBe(7)

    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const download = await downloading
    expect(download.suggestedFilename()).toBe('credits.csv')
    const csv = await readFile(await download.path(), 'utf8')
    expect(csv).toBe((await reader.get(CONSOLE_PATHS.csv)).body)
  })

  it('keeps the filter in the address, and loads more entries', async () => {
    const service = await serveConsole()
    await createRuns(service, 1, 1)
    const { page } = await openSignedIn(pages, service, '#/credits')
    const rows = page.getByRole('table', { name: 'Ledger' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    await page.getByLabel('Kind').selectOption('added')
    await expect.poll(() => rows.count()).toBe(1)
    expect(page.url()).toContain('#/credits?kind=added')
    await page.reload()
    await rows.filter({ hasText: 'Added' }).waitFor()
    await page.getByLabel('Kind').selectOption('refund')
    await page.getByText('No entries match').waitFor()
    await page.getByRole('link', { name: 'Clear the filters' }).click()
    await rows.nth(1).waitFor()
    await page.getByLabel('From (UTC)').fill('2030-01-01')
    await page.getByText('No entries match').waitFor()

    // 100 to a page.
    const store = await openStoreOf(service)
    for (let at = 0; at < 130; at++)
      await store.addCredits({ account: 'default', amount: 1, nowMs: service.clock.now() }, () => {})
    await store.close()
    await page.goto(`${service.url}/#/credits`)
    await page.reload()
    await rows.nth(99).waitFor()
    expect(await rows.count()).toBe(100)
    await page.getByRole('button', { name: 'Load more' }).click()
    await rows.nth(131).waitFor()
    expect([await rows.count(), await page.getByRole('button', { name: 'Load more' }).count()]).toEqual([
      132, 0,
    ])

    // The next page of a list that is not shown any more is dropped.
    await page.reload()
    await rows.nth(99).waitFor()
    const { taken } = await holdAnswers(page, 'GET', '**/api/console/credits?*before=*')
    await page.getByRole('button', { name: 'Load more' }).click()
    const late = await taken(0)
    await page.getByLabel('Kind').selectOption('charge')
    await expect.poll(() => rows.count()).toBe(1)
    await late.release()
    expect(await rows.count()).toBe(1)
  })
})

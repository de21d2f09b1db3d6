/**
 * Runs page tests in a real Chromium: the installed one, driven by playwright-core, which downloads nothing. Without
 * Chromium, `describePages` skips its tests and prints a message.
 */
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { describe, expect, onTestFinished } from 'vitest'
import { findChromium } from './find-chromium.js'
import { PATIENCE_MS } from './patience.js'

export interface OpenedPage {
  readonly page: Page
  /** URLs that the page requested, except files and data: URLs. */
  readonly requests: readonly string[]
}

export interface OpenOptions extends BrowserContextOptions {
  /** Errors and warnings that the test expects. */
  readonly ignored?: RegExp | undefined
}

export interface Pages {
  /** Opens a URL in a new context. Every error and warning of the page fails the test. */
  open(url: string, options?: OpenOptions): Promise<OpenedPage>
}

let started: Promise<Browser> | undefined

/** One browser for all files of this process. It ends with the process. */
const startedBrowser = (executablePath: string): Promise<Browser> => {
  started ??= chromium.launch({
    executablePath,
    args: [
      // Every window would start two processes for the suggestions of its address bar, which take 1.4 s of the processor.
      '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup',
      // Chromium has no sandbox for root.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ],
  })
  return started
}

/**
 * Waits until an expression is true in the page. The content security policy of the pages forbids
 * `page.waitForFunction`.
 */
export const becomesTrue = (page: Page, expression: string): Promise<void> =>
  expect.poll(() => page.evaluate(expression)).toBe(true)

/** Tests with a browser. */
export function describePages(name: string, define: (pages: Pages) => void): void {
  const path = findChromium()
  if (path === undefined) console.log(`Skipped: ${name} (no Chromium; install it or set CHROME_PATH)`)
  describe.skipIf(path === undefined)(name, () => {
    define({
      async open(url, { ignored, ...options } = {}) {
        const browser = await startedBrowser(path ?? '')
        const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
        context.setDefaultTimeout(PATIENCE_MS)
        const page = await context.newPage()
        const complaints: string[] = []
        const requests: string[] = []
        page.on('pageerror', (error) => complaints.push(error.message))
        page.on('console', (message) => {
          if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
        })
        page.on('dialog', (dialog) => {
          complaints.push(`dialog: ${dialog.message()}`)
          void dialog.dismiss()
        })
        page.on('request', (request) => {
          if (!/^(file|data|blob):/.test(request.url())) requests.push(request.url())
        })
        onTestFinished(async () => {
          await context.close()
          expect(complaints.filter((each) => ignored?.test(each) !== true)).toEqual([])
        })
        await page.goto(url)
        return { page, requests }
      },
    })
  })
}

const SERIOUS: readonly unknown[] = ['serious', 'critical']
export const ANY_IMPACT: readonly unknown[] = ['minor', 'moderate', ...SERIOUS]

/** Checks that axe finds no violation of these impacts, and that nothing is wider than the window. */
export async function expectAccessible(page: Page, impacts = SERIOUS): Promise<void> {
  // Runs in the isolated world of the test, where the content security policy of the page does not apply.
  const { violations } = await page.evaluate<{ violations: axe.Result[] }>(`${axe.source}; axe.run()`)
  const found = violations
    .filter(({ impact }) => impacts.includes(impact))
    .map(({ id, nodes }) => ({ id, at: nodes.map(({ html, failureSummary }) => [html, failureSummary]) }))
  expect(found).toEqual([])
  const tooMuch = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  expect(Number(tooMuch), page.url()).toBeLessThanOrEqual(0)
}

/** A new service with its console, and the system's Chromium. Needs a build and Chromium. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import { findChromium } from '../test/support/find-chromium.js'

// Not bundled: it finds its own files by their place.
const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof import('playwright-core')

/** The built program on a free port, with a folder of its own. */
export async function serveConsole() {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-console-'))
  const data = join(folder, 'data')
  const service = spawn(
    process.execPath,
    ['bin/rushes.cjs', 'serve', '--json', '--port', '0', '--data', data],
    {
      env: { ...process.env, HOME: folder, RUSHES_STATE_DIR: join(folder, 'state') },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const browser = await chromium.launch({
    executablePath: findChromium() ?? '',
    args: ['--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  })
  const [line] = await once(createInterface({ input: service.stdout }), 'line')
  const { url, models, console: link } = JSON.parse(line)
  return {
    ...{ url: String(url), models, data, browser },
    /** As the first user. The link works once. */
    async signIn(page: Page): Promise<void> {
      await page.goto(link)
      await page.getByRole('button', { name: 'Sign in with this link' }).click()
      await page.getByRole('button', { name: 'Skip' }).click()
    },
    async close(): Promise<void> {
      await browser.close()
      service.kill()
      await once(service, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A request of the page itself, with its session. */
export async function send(page: Page, method: string, path: string, body?: object) {
  const headers = { 'content-type': 'application/json' }
  const sent = JSON.stringify([path, { method, headers, body: body && JSON.stringify(body) }])
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any endpoint
  return await page.evaluate<any>(`fetch(...${sent}).then((response) => response.json())`)
}

/** Waits until all runs have ended. */
export async function allEnded(page: Page): Promise<void> {
  for (;;) {
    const { runs } = await send(page, 'GET', 'api/console/runs')
    if (runs.every(({ finished_at: at }: { finished_at: string | null }) => at !== null)) return
    await page.waitForTimeout(500)
  }
}

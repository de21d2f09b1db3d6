/**
 * The pictures of docs/console.md: `npm run bench -- console-pictures`. With a folder, every page in two widths and both
 * colours instead: `npm run bench -- console-pictures /tmp/pictures`. The built program serves a new data folder, runs are
 * created with the preview renderer, and the system's Chromium opens the console. Needs a build and Chromium.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { findChromium } from '../../test/support/find-chromium.js'

const { resolve } = createRequire(import.meta.url)
// Not bundled: it finds its own files by their place.
const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof import('playwright-core')
const SIZE = { width: 1320, height: 836 }
const SCALE = 1.5

const IMAGES = [
  'a red fox in fresh snow',
  'a lighthouse at dusk, long exposure',
  'a paper boat in a puddle, macro',
  'an old harbour in the morning fog',
  'a whale under the northern lights',
  'a yellow taxi in the rain, night',
  'a desert road with a lone cactus',
  'a tea house in a bamboo forest',
] as const
const VIDEO = 'a paper boat drifts down a rainy street'

/** Names, limits, and the number of runs of `IMAGES` that each creates. */
const KEYS = [
  { terms: { name: 'Website thumbnails', spend_limit: 10, quota: 100 }, runs: 4 },
  { terms: { name: 'CI nightly', spend_limit: 3, allowed_ips: ['127.0.0.0/8', '10.0.0.0/8'] }, runs: 3 },
  { terms: { name: 'Old laptop', expires_at: '2030-01-01T00:00:00Z' }, runs: 1 },
] as const

const { url, models, browser, signIn, close } = await serveConsole()

try {
  // The policy of the page would refuse the font that is put into it.
  const context = await browser.newContext({ viewport: SIZE, deviceScaleFactor: SCALE, bypassCSP: true })
  const page = await context.newPage()
  await signIn(page)

  const prompts = [...IMAGES]
  for (const { terms, runs } of KEYS) {
    const { api_key: key } = await send(page, 'POST', 'api/console/keys', terms)
    for (const prompt of prompts.splice(0, runs))
      await createRun(url, key, models.image, { prompt, aspect_ratio: '16:9' })
  }
  await send(page, 'POST', 'api/console/runs', { model: models.video, input: { prompt: VIDEO } })
  await send(page, 'POST', 'api/console/keys', { name: 'Render farm' })
  await allEnded(page)
  const { keys } = await send(page, 'GET', 'api/console/keys')
  const laptop = keys.find(({ name }: { name: string }) => name === 'Old laptop')
  await send(page, 'PATCH', `api/console/keys/${laptop.id}`, { disabled: true })

  const [folder] = process.argv.slice(2)
  if (folder === undefined) {
    await takePicture(page, `${url}/#/runs`, 'light', 'docs/console-light.jpg')
    await takePicture(page, `${url}/#/keys`, 'dark', 'docs/console-dark.jpg')
  } else {
    mkdirSync(folder, { recursive: true })
    const { runs } = await send(page, 'GET', 'api/console/runs')
    const pages = ['runs', 'new', 'keys', 'credits', 'account'].map((name) => [name, name] as const)
    for (const [name, path] of [
      ...pages,
      ['film', `runs/${runs[0].id}`] as const,
      ['run', `runs/${runs[1].id}`] as const,
    ])
      for (const width of [1280, 390])
        for (const scheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 860 })
          await takePicture(page, `${url}/#/${path}`, scheme, join(folder, `${name}-${width}-${scheme}.jpg`))
        }
  }
} finally {
  await close()
}

async function createRun(url: string, key: string, model: string, input: object): Promise<void> {
  const response = await fetch(`${url}/api/v1/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, input }),
  })
  if (response.status !== 201) throw new Error(await response.text())
}

/** With the font that comes first on many systems, whatever this one has. */
function fontFaces(): string {
  const faces = ['400Regular', '500Medium', '600SemiBold'].map((style) => {
    const file = readFileSync(resolve(`@expo-google-fonts/inter/${style}/Inter_${style}.ttf`))
    const source = `data:font/ttf;base64,${file.toString('base64')}`
    return `@font-face { font-family: Inter; font-weight: ${style.slice(0, 3)}; src: url(${source}) }`
  })
  return `${faces.join('\n')}\n:root { --sans: Inter, sans-serif }`
}

async function takePicture(
  page: Page,
  url: string,
  colorScheme: 'light' | 'dark',
  target: string,
): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.goto(url)
  await page.reload({ waitUntil: 'networkidle' })
  await page.addStyleTag({ content: fontFaces() })
  await page.evaluate('document.fonts.ready.then(() => true)')
  await page.waitForTimeout(500)
  const picture = await page.screenshot({ type: 'png' })
  await sharp(picture).jpeg({ quality: 78, mozjpeg: true }).toFile(target)
  console.log(target, Math.round(readFileSync(target).length / 1000), 'KB')
}

/** The built program on a free port, with a folder of its own. */
async function serveConsole() {
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
async function send(page: Page, method: string, path: string, body?: object) {
  const headers = { 'content-type': 'application/json' }
  const sent = JSON.stringify([path, { method, headers, body: body && JSON.stringify(body) }])
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any endpoint
  return await page.evaluate<any>(`fetch(...${sent}).then((response) => response.json())`)
}

/** Waits until all runs have ended. */
async function allEnded(page: Page): Promise<void> {
  for (;;) {
    const { runs } = await send(page, 'GET', 'api/console/runs')
    if (runs.every(({ finished_at: at }: { finished_at: string | null }) => at !== null)) return
    await page.waitForTimeout(500)
  }
}

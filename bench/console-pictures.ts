/**
 * The pictures of docs/console.md: `node bench/run.mjs console-pictures`. The built program serves a new data folder, runs are
 * created with the preview renderer, and the system's Chromium opens the console. Needs a build and Chromium.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { allEnded, send, serveConsole } from './console-service.js'

const { resolve } = createRequire(import.meta.url)
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

  await takePicture(page, url, '#/runs', 'light')
  await takePicture(page, url, '#/keys', 'dark')
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
  const faces = [400, 500, 600].map((weight) => {
    const file = readFileSync(resolve(`@fontsource/inter/files/inter-latin-${weight}-normal.woff2`))
    const source = `data:font/woff2;base64,${file.toString('base64')}`
    return `@font-face { font-family: Inter; font-weight: ${weight}; src: url(${source}) }`
  })
  return `${faces.join('\n')}\n:root { --sans: Inter, sans-serif }`
}

async function takePicture(
  page: Page,
  url: string,
  fragment: string,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.goto(`${url}/${fragment}`)
  await page.reload({ waitUntil: 'networkidle' })
  await page.addStyleTag({ content: fontFaces() })
  await page.evaluate('document.fonts.ready.then(() => true)')
  await page.waitForTimeout(500)
  const picture = await page.screenshot({ type: 'png' })
  const target = `docs/console-${colorScheme}.jpg`
  await sharp(picture).jpeg({ quality: 78, mozjpeg: true }).toFile(target)
  console.log(target, Math.round(readFileSync(target).length / 1000), 'KB')
}

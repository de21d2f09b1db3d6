/**
 * The pictures of docs/console.md: `npm run bench -- console-pictures`. With a folder, every page and state in two widths and both
 * colours instead: `npm run bench -- console-pictures /tmp/pictures`. The built program serves a new data folder, runs are
 * created with the preview renderer, and the system's Chromium opens the console. Needs a build and Chromium.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
const RATIOS = ['16:9', '1:1', '3:4', '16:9', '21:9', '2:3', '4:3', '16:9'] as const
const VIDEO = 'a paper boat drifts down a rainy street'
const LONG = `<b>"A very long prompt"</b> about a lighthouse keeper who ${'walks up and down the stairs '.repeat(120)}${'x'.repeat(300)}`

/** Terms of keys as texts of their form, and the number of runs of `IMAGES` that each creates. */
const KEYS = [
  { terms: { name: 'Website thumbnails', spend_limit: '10', quota: '100' }, runs: 4 },
  { terms: { name: 'CI nightly', spend_limit: '3', allowed_ips: '127.0.0.0/8\n10.0.0.0/8' }, runs: 3 },
  { terms: { name: 'Old laptop', expires_at: '2030-01-01' }, runs: 1 },
] as const

/** Further models: four outputs, an end with an error, and no end. */
const script = (work: string) => `#!/bin/sh\ncat > /dev/null\n${work}\n`
const SCRIPTS = {
  four: 'for n in 1 2 3 4; do cp "$(dirname "$0")/picture.png" "$RUSHES_OUTPUT_DIR/$n.png"; done',
  broken: 'echo "CUDA out of memory. Tried to allocate 2.00 GiB" >&2; exit 1',
  endless: 'sleep 600',
} as const

const folder = mkdtempSync(join(tmpdir(), 'rushes-console-'))
const [target] = process.argv.slice(2)
const { url, models, browser, link, close } = await serveConsole(target !== undefined)

try {
  // The policy of the page would refuse the font that is put into it.
  const context = await browser.newContext({ viewport: SIZE, deviceScaleFactor: SCALE, bypassCSP: true })
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole('button', { name: 'Sign in with this link' }).click()
  await page.waitForURL('**/account')

  /** Sends a form of the page, with its session. Returns the answer. */
  const send = async (path: string, fields: Readonly<Record<string, string>> = {}) => {
    const form = { form_key: crypto.randomUUID(), ...fields }
    const answer = await context.request.post(url + path, { form, headers: { origin: url } })
    if (!answer.ok()) throw new Error(`${path}: ${answer.status()} ${await answer.text()}`)
    return answer
  }

  const states: Record<string, string> = {}
  if (target !== undefined) states['runs-empty'] = await htmlOf('/runs')
  const prompts = IMAGES.map((prompt, at) => ({ prompt, aspect_ratio: RATIOS[at] }))
  for (const { terms, runs } of KEYS) {
    const [key = ''] = /rk_[\w-]{43}/.exec(await (await send('/keys/new', terms)).text()) ?? []
    for (const input of prompts.splice(0, runs)) await createRun(key, models.image, input)
  }
  await send('/runs', { model: models.video, prompt: VIDEO })
  await send('/keys/new', { name: 'Render farm' })
  await allEnded()
  await send('/keys/4/disable')
  const film = await newest()

  if (target === undefined) {
    await takePicture(page, '/runs', 'light', 'docs/console-light.jpg')
    await takePicture(page, '/keys', 'dark', 'docs/console-dark.jpg')
  } else {
    const create = async (fields: Readonly<Record<string, string>>) => (await send('/runs', fields)).url()
    const picture = await create({ model: models.image, prompt: 'a castle in the fog', aspect_ratio: '3:2' })
    const four = await create({ model: 'test/four', prompt: 'four of a kind' })
    const failed = await create({ model: 'test/broken', prompt: LONG })
    await allEnded()
    const canceled = await create({ model: 'test/endless', prompt: 'a run that is canceled' })
    await send(`${new URL(canceled).pathname}/cancel`)
    const running = await create({ model: 'test/endless', prompt: 'a run that goes on and on' })
    await create({ model: models.image, prompt: 'a'.repeat(200) })
    const paths = {
      runs: '/runs',
      grid: '/runs?view=grid',
      none: '/runs?view=list&search=zebra',
      film,
      picture,
      four,
      failed,
      canceled,
      running,
      new: '/new',
      'new-video': `/new?model=${models.video}`,
      keys: '/keys',
      key: '/keys/new',
      credits: '/credits',
      account: '/account',
      missing: '/runs/run_none',
    }
    mkdirSync(target, { recursive: true })
    for (const [name, path] of Object.entries(paths))
      for (const width of [1280, 390])
        for (const scheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 860 })
          await takePicture(page, path, scheme, join(target, `${name}-${width}-${scheme}.png`))
        }
    await context.clearCookies()
    for (const scheme of ['light', 'dark'] as const)
      await takePicture(page, '/runs', scheme, join(target, `sign-in-${scheme}.png`))
  }

  async function htmlOf(path: string): Promise<string> {
    const answer = await context.request.get(url + path)
    return await answer.text()
  }

  async function newest(): Promise<string> {
    return `/runs/${/id="(run_\w+)"/.exec(await htmlOf('/runs'))?.[1]}`
  }

  /** Waits until all runs have ended. */
  async function allEnded(): Promise<void> {
    while (/name="at"/.test(await htmlOf('/runs'))) await page.waitForTimeout(500)
  }
} finally {
  await close()
}

async function createRun(key: string, model: string, input: object): Promise<void> {
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
  path: string,
  colorScheme: 'light' | 'dark',
  file: string,
): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.goto(new URL(path, url).href)
  await page.addStyleTag({ content: fontFaces() })
  await page.evaluate('document.fonts.ready.then(() => true)')
  // Each thumbnail is made when it is first asked for.
  const areLoaded =
    '[...document.images].every((image) => image.getBoundingClientRect().top > innerHeight || image.naturalWidth > 0)'
  await page.waitForFunction(areLoaded)
  await page.waitForTimeout(500)
  const isDocs = file.endsWith('.jpg')
  const picture = await page.screenshot({ type: 'png', fullPage: !isDocs })
  if (isDocs) await sharp(picture).jpeg({ quality: 78, mozjpeg: true }).toFile(file)
  else writeFileSync(file, picture)
  console.log(file, Math.round(readFileSync(file).length / 1000), 'KB')
}

/** Documents of models whose engines are scripts. */
async function writeModels(): Promise<string> {
  const at = join(folder, 'models')
  mkdirSync(at)
  await sharp({ create: { width: 640, height: 640, channels: 3, background: '#4a7' } })
    .png()
    .toFile(join(at, 'picture.png'))
  for (const [name, work] of Object.entries(SCRIPTS)) {
    writeFileSync(join(at, `${name}.sh`), script(work), { mode: 0o700 })
    writeFileSync(
      join(at, `${name}.yaml`),
      `name: test/${name}\nkind: image\nengine:\n  type: command\n  command: ${join(at, `${name}.sh`)}\nprice: { run: 2 }\n`,
    )
  }
  // They replace the models of the service.
  for (const kind of ['image', 'video'])
    writeFileSync(
      join(at, `${kind}.yaml`),
      `name: rushes/preview-${kind}\nkind: ${kind}\ndefault: true\nengine:\n  type: preview\nprice: { run: ${kind === 'image' ? 1 : 5} }\n`,
    )
  return at
}

/** The built program on a free port, with a folder of its own. */
async function serveConsole(hasFurtherModels: boolean) {
  const data = join(folder, 'data')
  const further = hasFurtherModels ? ['--models', await writeModels()] : []
  const service = spawn(
    process.execPath,
    ['bin/rushes.cjs', 'serve', '--json', '--port', '0', '--data', data, ...further],
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
    ...{ url: String(url), models, link: String(link), browser },
    async close(): Promise<void> {
      await browser.close()
      service.kill()
      await once(service, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * What the console costs in a browser: `npm run bench:console`. The built program serves a new data folder, the preview
 * renderer makes eight pictures of 3840 pixels, and all runs share their files. The system's Chromium opens the pages.
 * Needs a build and Chromium.
 */
import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import { openDatabase } from '../src/host/database.js'
import { SERVICE_MIGRATIONS } from '../src/service/store/sqlite/service-migrations.js'
import { allEnded, send, serveConsole } from './console-service.js'
import { median, quantile, row } from './table.js'

const TIMES = 15
const RUNS = Number(process.argv[2] ?? 10_000)
const VIEWPORT = { width: 1_280, height: 860 }
const RATIOS = ['16:9', '1:1', '9:16', '4:3', '3:4', '16:9', '1:1', '21:9']
/** Pixels a frame, and the most frames: slow scrolling over all runs would take minutes. At 24, rows load their pictures. */
const SPEEDS = [
  [24, 600],
  [120, 3_000],
  [700, Number.POSITIVE_INFINITY],
] as const

const { url, models, data, browser, signIn, close } = await serveConsole()

try {
  const storageState = await createPictures()

  addRuns(50)
  console.log(`\nChromium ${browser.version()}, Node.js ${process.version}\n`)
  row('first contentful paint, ms', `median of ${TIMES}`, 'fastest', 'load of the machine')
  row('---', '--:', '--:', '--:')
  await measurePaint('sign-in', `${url}/`, {})
  await measurePaint('keys', `${url}/#/keys`, { storageState })
  await measurePaint('runs, 50 finished pictures', `${url}/#/runs`, { storageState })

  addRuns(RUNS)
  console.log()
  row('first screen of the runs', 'pictures', 'MB', 'until the last, ms', 'load of the machine')
  row('---', '--:', '--:', '--:', '--:')
  for (const name of ['a new browser', 'the next one']) await measureScreen(name, url, { storageState })

  console.log()
  row(`${RUNS} runs, pixels a frame`, 'frames', 'median, ms', 'p95', 'longest', 'over 50 ms', 'load')
  row('---', '--:', '--:', '--:', '--:', '--:', '--:')
  for (const [pixels, frames] of SPEEDS) await measureScroll(pixels, frames, url, { storageState })

  console.log()
  row('the page, bytes', 'brotli', 'gzip')
  row('---', '--:', '--:')
  row('index.html, script, styles, icon', compressed('.br'), compressed('.gz'))
} finally {
  await close()
}

function load(): string {
  return (loadavg()[0] ?? 0).toFixed(1)
}

/** The storage of the browser in which the first user created the pictures. */
async function createPictures() {
  const context = await browser.newContext()
  const page = await context.newPage()
  await signIn(page)
  for (const [at, aspect_ratio] of RATIOS.entries()) {
    const input = { prompt: `a lighthouse at dusk, ${at}`, aspect_ratio, quality: 'high' }
    await send(page, 'POST', 'api/console/runs', { model: models.image, input })
  }
  await allEnded(page)
  const state = await context.storageState()
  await context.close()
  return state
}

/** Until there are `count`. In one transaction, and with the files of the first runs: creating them takes hours. */
function addRuns(count: number): void {
  const database = openDatabase({ path: join(data, 'service.db'), migrations: SERVICE_MIGRATIONS })
  const pictures = database.all(
    `SELECT token, name, bytes, sha256 FROM outputs ORDER BY rowid LIMIT ${RATIOS.length}`,
  )
  const nowMs = Date.now()
  database.transaction(() => {
    const first = Number(database.get('SELECT count(*) AS count FROM runs')?.count)
    for (let at = first; at < count; at++) {
      const { token, name, bytes, sha256 } = pictures[at % pictures.length] as Record<string, string>
      const [id, own] = [`run_${String(at).padStart(20, '0')}`, randomBytes(16).toString('hex')]
      mkdirSync(join(data, 'outputs', own))
      linkSync(join(data, 'outputs', String(token), String(name)), join(data, 'outputs', own, String(name)))
      const input = JSON.stringify({ prompt: `a lighthouse at dusk with long shadows and warm light, ${at}` })
      database.run(
        `INSERT INTO runs (id, account_id, model, kind, input, status, owner, created_at, started_at, finished_at)
         VALUES (?, 1, 'rushes/preview-image', 'image', ?, 'succeeded', '', ?, ?, ?)`,
        ...[id, input, nowMs, nowMs, nowMs],
      )
      database.run(
        `INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
         VALUES (?, 0, ?, ?, 'image/png', ?, ?)`,
        ...[id, own, String(name), Number(bytes), String(sha256)],
      )
    }
  })
  database.close()
}

/** In a browser without a cache, each time. */
async function measurePaint(name: string, url: string, options: BrowserContextOptions): Promise<void> {
  const times: number[] = []
  for (let time = 0; time < TIMES; time++) {
    const { page, close } = await open(url, options)
    await page.waitForLoadState('load')
    const paint = `performance.getEntriesByType('paint').find(({ name }) => name === 'first-contentful-paint')?.startTime`
    let painted: number | undefined
    while (painted === undefined) painted = (await page.evaluate(paint)) as number | undefined
    times.push(painted)
    await close()
  }
  row(name, Math.round(median(times)), Math.round(Math.min(...times)), load())
}

async function open(url: string, options: BrowserContextOptions) {
  const context = await browser.newContext({ viewport: VIEWPORT, ...options })
  const page = await context.newPage()
  await page.goto(url)
  return { page, close: () => context.close() }
}

/** What is transferred until all pictures of the first screen are drawn. */
async function measureScreen(name: string, url: string, options: BrowserContextOptions): Promise<void> {
  const context = await browser.newContext({ viewport: VIEWPORT, ...options })
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  let bytes = 0
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  await session.send('Network.enable')
  const started = performance.now()
  await page.goto(`${url}/#/runs`)
  await page.locator('.run-thumb img').first().waitFor()
  const inView = `[...document.querySelectorAll('.run-thumb img')].filter((image) => image.getBoundingClientRect().top < innerHeight)`
  while (!(await page.evaluate(`${inView}.every((image) => image.naturalWidth > 0)`)))
    await page.waitForTimeout(10)
  const drawn = performance.now() - started
  const pictures = (await page.evaluate(`${inView}.length`)) as number
  await page.waitForLoadState('networkidle')
  row(name, pictures, (bytes / 1e6).toFixed(2), Math.round(drawn), load())
  await context.close()
}

/** Scrolls by script towards the oldest run, until that is there or `most` frames were drawn. The page reads more runs on the way. */
async function measureScroll(
  pixels: number,
  most: number,
  url: string,
  options: BrowserContextOptions,
): Promise<void> {
  const { page, close } = await open(`${url}/#/runs`, options)
  page.setDefaultTimeout(0)
  await page.locator('.run-thumb img').first().waitFor()
  await page.waitForLoadState('networkidle')
  const oldest = oldestRun()
  // A tab that crashes never answers.
  const crashed = new Promise<undefined>((resolve) => page.once('crash', () => resolve(undefined)))
  const scrolled = page.evaluate<number[]>(`new Promise((resolve) => {
    const frames = []
    let last = performance.now()
    const step = (now) => {
      frames.push(now - last)
      last = now
      const isAtEnd = document.querySelector('.runs-body [data-run="${oldest}"]') !== null
      if (isAtEnd || frames.length >= ${Number.isFinite(most) ? most : 'Infinity'}) return resolve(frames.slice(1))
      scrollBy({ top: ${pixels}, behavior: 'instant' })
      requestAnimationFrame(step)
    }
    requestAnimationFrame(step)
  })`)
  const frames = await Promise.race([scrolled.catch(() => undefined), crashed])
  if (frames === undefined) {
    row(pixels, 'the tab crashed', '', '', '', '', load())
    return await close()
  }
  const long = frames.filter((each) => each > 50).length
  row(
    ...[pixels, frames.length, median(frames).toFixed(1)],
    quantile(frames, 0.95).toFixed(1),
    Math.max(...frames).toFixed(1),
    `${long} (${((100 * long) / frames.length).toFixed(2)} %)`,
    load(),
  )
  await close()
}

function oldestRun(): unknown {
  const database = openDatabase({ path: join(data, 'service.db'), migrations: SERVICE_MIGRATIONS })
  const found = database.get('SELECT id FROM runs ORDER BY sequence LIMIT 1')?.id
  database.close()
  return found
}

function compressed(ending: string): number {
  const files = readdirSync('dist/console', { recursive: true }) as string[]
  return files
    .filter((name) => name.endsWith(ending))
    .reduce((sum, name) => sum + statSync(join('dist/console', name)).size, 0)
}

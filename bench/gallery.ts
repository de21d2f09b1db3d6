/**
 * What the page of `rushes gallery` costs with many results: `npm run bench:gallery -- 5000`. The command writes it from a
 * journal with that number of runs; the system's Chromium opens it from disk. Needs a build and Chromium.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import sharp from 'sharp'
import { openJournal } from '../src/journal/index.js'
import { findChromium } from '../test/support/find-chromium.js'
import { median, row } from './table.js'

const TIMES = 5
const ADDRESS = 'https://api.example.com'
const WORDS = 'a red fox in fresh snow beside the old harbour at dusk with long shadows and warm light'.split(
  ' ',
)
const SIZES = [
  [1024, 1024],
  [1280, 720],
  [720, 1280],
  [960, 720],
] as const

const count = Number(process.argv[2] ?? 5_000)
const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
const page = join(folder, 'gallery.html')

async function fill(): Promise<void> {
  const state = join(folder, 'state')
  mkdirSync(join(folder, 'out'))
  mkdirSync(state, { mode: 0o700 })
  const pictures: string[] = []
  for (const [width, height] of SIZES) {
    const path = join(folder, `${width}x${height}.png`)
    // Noise, so that the browser has as much to decode as of a photograph.
    const noise = { type: 'gaussian' as const, mean: 128, sigma: 20 }
    const image = sharp({ create: { width, height, channels: 3, background: 'teal', noise } })
    writeFileSync(path, await image.png().toBuffer())
    pictures.push(path)
  }
  let now = Date.UTC(2026, 0, 1)
  const journal = openJournal({ path: join(state, 'journal.db'), now: () => now, onQuarantine: () => {} })
  for (let at = 0; at < count; at++) {
    now += 60_000
    const id = `run_${String(at).padStart(20, '0')}`
    const prompt = Array.from({ length: 18 }, (_, word) => WORDS[(at * 7 + word * 5) % WORDS.length]).join(
      ' ',
    )
    const picture = pictures[at % pictures.length] ?? ''
    const path = join(folder, 'out', `${id}.png`)
    linkSync(picture, path)
    const model = `acme/still-${at % 3}`
    journal.accept(
      journal.intend({ address: ADDRESS, profile: 'default', kind: 'image', model, input: { prompt } }),
      id,
    )
    const file = { path, bytes: statSync(path).size, sha256: createHash('sha256').update(id).digest('hex') }
    journal.recordFiles(ADDRESS, id, [
      { ...file, url: `https://cdn.example.com/${id}.png`, content_type: 'image/png' },
    ])
  }
  journal.close()
}

function write(): number {
  const started = performance.now()
  const { status, stderr } = spawnSync(process.execPath, ['bin/rushes.cjs', 'gallery', '-o', page], {
    env: { ...process.env, RUSHES_STATE_DIR: join(folder, 'state'), HOME: folder },
  })
  if (status !== 0) throw new Error(String(stderr))
  return performance.now() - started
}

interface Opened {
  readonly paintMs: number
  readonly scriptMs: number
  readonly layoutMs: number
  readonly nodes: number
  readonly searchMs: number
}

async function open(): Promise<Opened> {
  // Not bundled: it finds its own files by their place.
  const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof import('playwright-core')
  const browser = await chromium.launch({
    executablePath: findChromium() ?? '',
    args: ['--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  })
  try {
    const tab = await browser.newPage({ viewport: { width: 1_280, height: 860 } })
    const session = await tab.context().newCDPSession(tab)
    await session.send('Performance.enable')
    await tab.goto(pathToFileURL(page).href)
    // Everything in the window has been loaded and drawn.
    await tab.waitForLoadState('load')
    await tab.waitForFunction('[...document.images].every((image) => image.complete)')
    const paint = (await tab.evaluate(
      `performance.getEntriesByName('first-contentful-paint')[0].startTime`,
    )) as number
    const { metrics } = await session.send('Performance.getMetrics')
    const value = (name: string) => metrics.find((each) => each.name === name)?.value ?? 0
    const search = (await tab.evaluate(`(() => {
      const started = performance.now()
      const field = document.querySelector('#search')
      field.value = 'fox dusk'
      field.dispatchEvent(new Event('input'))
      return performance.now() - started
    })()`)) as number
    return {
      paintMs: paint,
      scriptMs: value('ScriptDuration') * 1_000,
      layoutMs: (value('LayoutDuration') + value('RecalcStyleDuration')) * 1_000,
      nodes: value('Nodes'),
      searchMs: search,
    }
  } finally {
    await browser.close()
  }
}

try {
  await fill()
  const written: number[] = []
  const opened: Opened[] = []
  for (let time = 0; time < TIMES; time++) {
    written.push(write())
    opened.push(await open())
  }
  const middle = (of: (each: Opened) => number) => Math.round(median(opened.map(of)))
  row(`${count} results`, 'median of 5')
  row('---', '--:')
  row('`rushes gallery`, s', (median(written) / 1_000).toFixed(1))
  row('size of the page, MB', (statSync(page).size / 1e6).toFixed(1))
  row(
    'first contentful paint, ms',
    middle(({ paintMs }) => paintMs),
  )
  row(
    'script, ms',
    middle(({ scriptMs }) => scriptMs),
  )
  row(
    'styles and layout, ms',
    middle(({ layoutMs }) => layoutMs),
  )
  row(
    'nodes in the document',
    middle(({ nodes }) => nodes),
  )
  row(
    'a search, ms',
    middle(({ searchMs }) => searchMs),
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}

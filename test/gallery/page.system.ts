/** The page in a real Chromium, from disk. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { type GalleryFile, type GalleryRun, galleryHtml, linkTo, mediaOf } from '../../src/gallery/index.js'
import {
  ANY_IMPACT,
  becomesTrue,
  describePages,
  expectAccessible,
  type OpenOptions,
} from '../support/browser.js'
import { ONE_PIXEL_PNG, temporaryFolder } from '../support/index.js'
import { tinyVideo } from '../support/tiny-video.js'

const XSS = '</script><img src=x onerror=alert(1)>'

let film: Uint8Array
beforeAll(async () => {
  film = await tinyVideo()
})

/** A run with these files, which are a picture or a film by their names. */
interface Given extends Partial<Omit<GalleryRun, 'files'>> {
  readonly paths?: readonly string[]
}

interface Surroundings extends OpenOptions {
  readonly notes?: readonly string[]
  /** Other contents of files. Undefined: the file is missing. */
  readonly contents?: Readonly<Record<string, string | undefined>>
}

/** Writes a page with these runs and their files into an empty folder; its URL. */
function writePage(given: readonly Given[], { notes = [], contents = {} }: Surroundings = {}): string {
  const place = temporaryFolder()
  const written = new Set<string>()
  const fileOf = (path: string): GalleryFile => {
    const content = path in contents ? contents[path] : path.endsWith('.mp4') ? film : ONE_PIXEL_PNG
    if (content !== undefined && !written.has(path)) {
      mkdirSync(dirname(join(place, path)), { recursive: true })
      writeFileSync(join(place, path), content)
    }
    written.add(path)
    const link = linkTo(place, join(place, path), posix)
    return { ...link, media: mediaOf(path), ratio: 1, isOpened: true }
  }
  const runs = given.map(({ paths = ['a.png'], ...more }, at) => ({
    ...{ id: `run_${at}`, prompt: `prompt ${at}`, model: 'acme/still-1', labels: [] },
    ...{ time: 1e12, ...more, files: paths.map(fileOf) },
  }))
  const page = join(place, 'gallery.html')
  writeFileSync(page, galleryHtml({ runs, notes }))
  return pathToFileURL(page).href
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => at)

const focusedTile = (page: Page) =>
  page.evaluate<string | null>("document.activeElement?.getAttribute('aria-label')")

describePages('the page of rushes gallery', (pages) => {
  async function open(given: readonly Given[], { notes, contents, ...options }: Surroundings = {}) {
    const url = writePage(given, { ...(notes && { notes }), ...(contents && { contents }) })
    const { page, requests } = await pages.open(url, options)
    return {
      ...{ page, requests, viewer: page.locator('#viewer'), tile: page.locator('.tile') },
      text: (selector: string) => page.locator(selector).textContent(),
      texts: (selector: string) => page.locator(selector).allTextContents(),
      async press(...keys: readonly string[]) {
        for (const key of keys) await page.keyboard.press(key)
      },
    }
  }

  it('shows every picture, whatever its file name, without the network', async () => {
    const names = [
      ...['a b.png', '#1 100%?.png', `"q" 'x' <&>.png`, '狐/\u202efox.png', 'a\\b.png', 'é:x.png', ' .png'],
    ]
    const { page, requests } = await open(names.map((name) => ({ paths: [name] })))
    await becomesTrue(
      page,
      `document.images.length === ${names.length} && [...document.images].every((image) => image.naturalWidth === 1)`,
    )
    expect(requests).toEqual([])
  })

  it('shows prompts, models, ids and names as text', async () => {
    const prompts = [XSS, '<!--<script>', '&lt;', 'a fox\nin two lines']
    const { page, text, texts, tile } = await open(
      prompts.map((prompt) => ({ prompt, model: `model ${prompt}`, id: `id ${prompt}` })),
      { notes: [XSS], viewport: { width: 1_280, height: 8_000 } },
    )
    expect(await texts('.prompt')).toEqual(prompts)
    const models = prompts.map((prompt) => `model ${prompt.replace('\n', ' ')}`)
    expect((await texts('#model option')).sort()).toEqual(['All models', ...models].sort())
    expect(await page.locator('img').count()).toBe(prompts.length)
    expect(await text('footer')).toContain(XSS)
    await tile.first().click()
    expect(await texts('#viewer dd')).toContain(`id ${XSS}`)
  })

  it('filters by words, kind, model, label and manifest, and says how many results match', async () => {
    const { page, text, texts } = await open([
      { prompt: 'a red fox', labels: ['spring', XSS, 'constructor'], manifest: 'shots.yaml', row: 'hero' },
      { prompt: 'a boat', model: 'acme/cinema-1', paths: ['b.mp4'] },
      { prompt: 'a blue fox', model: 'acme/still-2', labels: ['spring'] },
    ])
    const prompts = () => texts('#grid li:not([hidden]) .prompt')
    const choose = async (name: string, label: string) => {
      await page.getByLabel(name, { exact: true }).selectOption({ label })
      return prompts()
    }
    const search = async (words: string) => {
      await page.getByLabel('Search').fill(words)
      return prompts()
    }
    expect(await text('#total')).toBe('3 results')
    expect(await choose('Kind', 'Video')).toEqual(['a boat'])
    expect(await text('#total')).toBe('1 result')
    await choose('Kind', 'All kinds')
    expect(await search('FOX  a')).toEqual(['a red fox', 'a blue fox'])
    expect(await choose('Model', 'acme/still-2')).toEqual(['a blue fox'])
    expect(await search('run_0')).toEqual([])
    expect(await text('#empty')).toBe('No results match.')
    expect(await choose('Model', 'All models')).toEqual(['a red fox'])
    expect(await search('hero')).toEqual(['a red fox'])
    await search('')
    expect(await choose('Label', XSS)).toEqual(['a red fox'])
    expect(await choose('Label', 'constructor')).toEqual(['a red fox'])
    expect(await choose('Label', 'spring')).toEqual(['a red fox', 'a blue fox'])
    expect(await choose('Manifest', 'shots.yaml')).toEqual(['a red fox'])
    expect(await text('#grid li:not([hidden]) .name')).toBe('hero')
    const other = await open([{}])
    for (const name of ['label', 'manifest', 'model', 'kind'])
      expect(await other.page.locator(`#${name}`).isHidden()).toBe(true)
  })

  it('shows the variants of one row together', async () => {
    const hero = { row: 'hero', manifest: 'shots.yaml' }
    const { page, text, tile, press } = await open([
      { ...hero, prompt: 'a fox, oil', paths: ['1.png'] },
      { prompt: 'a boat', paths: ['2.png'] },
      { ...hero, prompt: 'a fox', paths: ['3.png'] },
    ])
    expect(await page.locator('#grid li').count()).toBe(2)
    expect(await page.locator('#grid li').first().locator('.tile').count()).toBe(2)
    await tile.first().click()
    expect(await text('#viewer dl')).toContain('Variant1 of 2')
    await press('ArrowRight')
    expect(await text('#prompt')).toBe('a fox, oil')
  })

  it('can be used with the keyboard alone', async () => {
    const { page, text, tile, viewer, press } = await open(numbered(30).map(() => ({})))
    await tile.nth(1).focus()
    await press('Enter')
    expect(await viewer.isVisible()).toBe(true)
    await press('ArrowRight', 'ArrowRight')
    expect(await text('#prompt')).toBe('prompt 3')
    await press('ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft')
    expect(await text('#prompt')).toBe('prompt 0')
    await press('ArrowRight', 'Escape')
    expect(await viewer.isVisible()).toBe(false)
    // By an event that comes after the key.
    await expect.poll(() => focusedTile(page)).toBe('Image: prompt 1')
  })

  it.each([true, false])(
    'copies the run id and the prompt from disk, where a page has access to the clipboard: %s',
    async (hasClipboard) => {
      const prompt = `it's </script>`
      const permissions = ['clipboard-read', 'clipboard-write']
      const { page, tile, viewer } = await open([{ prompt }], { permissions })
      if (!hasClipboard)
        await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
      const search = page.getByLabel('Search')
      for (const [name, copied] of [
        ['Copy run id', 'run_0'],
        ['Copy prompt', prompt],
      ] as const) {
        await tile.first().click()
        await page.getByRole('button', { name }).click()
        await page.locator('#said', { hasText: 'Copied' }).waitFor()
        await viewer.press('Escape')
        await search.fill('')
        await search.press('Control+V')
        expect(await search.inputValue()).toBe(copied)
        await search.fill('')
      }
    },
  )

  it('shows when a file is missing or cannot be displayed', async () => {
    const contents = { 'gone.png': undefined, 'broken.mp4': 'no video', 'model.glb': 'x' }
    const { page, text, tile } = await open(
      Object.keys(contents).map((path) => ({ paths: [path] })),
      { contents, ignored: /ERR_FILE_NOT_FOUND/ },
    )
    for (const hasText of ['PNG', 'MP4', 'GLB']) await page.locator('.card', { hasText }).waitFor()
    await tile.first().click()
    expect(await text('.missing')).toMatch(/moved or deleted/)
  })

  it('loads only media near the window, with 5,000 results', async () => {
    const { page, text, tile } = await open(
      numbered(5_000).map((at) => (at % 2 === 1 ? { paths: ['b.mp4'] } : {})),
    )
    expect(await text('#total')).toBe('5,000 results')
    await becomesTrue(page, "document.querySelector('video').readyState > 0")
    expect(await page.evaluate<number>("document.querySelectorAll('video[src]').length")).toBeLessThan(60)
    await tile.last().focus()
    expect(await focusedTile(page)).toBe('Video: prompt 4999')
    await becomesTrue(page, "[...document.querySelectorAll('video')].at(-1).readyState > 0")
  })

  it.each([
    [360, 'light'],
    [1_280, 'dark'],
  ] as const)('is accessible and fits %i pixels, %s', async (width, colorScheme) => {
    const { page, tile, press } = await open(
      [
        {},
        { paths: ['b.mp4', 'a.png'], model: 'acme/cinema-1', labels: ['spring'] },
        { prompt: 'x'.repeat(400) },
      ],
      {
        ...{ notes: ['Written 2026-01-01.'], viewport: { width, height: 740 } },
        ...{ colorScheme, reducedMotion: 'reduce' },
      },
    )
    await expectAccessible(page, ANY_IMPACT)
    for (const at of [0, 1]) {
      await tile.nth(at).click()
      await expectAccessible(page, ANY_IMPACT)
      await press('Escape')
    }
  })

  it('shows a message when it is empty', async () => {
    const { text } = await open([])
    expect([await text('#empty'), await text('#total')]).toEqual(['No results yet.', '0 results'])
  })
})

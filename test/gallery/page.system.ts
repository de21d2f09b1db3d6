/** The page in a real Chromium, from disk. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { type GalleryFile, type GalleryRun, galleryHtml, linkTo, mediaOf } from '../../src/gallery/index.js'
import { ANY_IMPACT, becomesTrue, describePages, expectAccessible } from '../support/browser.js'
import { ONE_PIXEL_PNG, temporaryFolder } from '../support/index.js'
import { tinyVideo } from '../support/tiny-video.js'

const XSS = '</script><img src=x onerror=alert(1)>'

interface Given extends Partial<Omit<GalleryRun, 'files'>> {
  /** Paths in the folder of the page. */
  readonly paths?: readonly string[]
  readonly ratio?: number
}

/** Writes a page with these runs; its URL. Files are not written. */
function writePage(place: string, given: readonly Given[], notes: readonly string[] = []): string {
  const runs = given.map(({ paths = ['a.png'], ratio = 1, ...more }, at): GalleryRun => {
    const files = paths.map((path): GalleryFile => {
      const media = mediaOf(path)
      const link = linkTo(place, join(place, path), posix)
      return { ...link, media, size: '1.5 KiB', ratio, isOpened: true }
    })
    const usual = {
      id: `run_${at}`,
      prompt: `prompt ${at}`,
      model: 'acme/still-1',
      labels: [],
      parameters: [],
      where: 'local',
      time: 1e12,
    }
    return { ...usual, ...more, files }
  })
  const path = join(place, 'gallery.html')
  writeFileSync(path, galleryHtml({ runs, notes }))
  return pathToFileURL(path).href
}

function put(place: string, path: string, content: string | Uint8Array = ONE_PIXEL_PNG): string {
  mkdirSync(dirname(join(place, path)), { recursive: true })
  writeFileSync(join(place, path), content)
  return path
}

const PROMPTS = '#grid li:not([hidden]) .prompt'
const focusedTile = (page: Page) =>
  page.evaluate<string | null>("document.activeElement?.getAttribute('aria-label')")

describePages('the page of rushes gallery', (pages) => {
  it('shows every picture, whatever its file name, without the network', async () => {
    const place = temporaryFolder()
    const names = [
      'a b.png',
      '#1 100%?.png',
      `"q" 'x' <&>.png`,
      '狐/\u202efox.png',
      'a\\b.png',
      'é:x.png',
      ' .png',
    ]
    const url = writePage(
      place,
      names.map((name) => ({ paths: [put(place, name)] })),
    )
    const { page, requests } = await pages.open(url)
    await becomesTrue(
      page,
      `document.images.length === ${names.length} && [...document.images].every((image) => image.naturalWidth === 1)`,
    )
    expect(requests).toEqual([])
  })

  it('shows prompts, models, ids and names as text', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const texts = [XSS, '<!--<script>', '&lt;', 'a fox\nin two lines']
    const url = writePage(
      place,
      texts.map((text) => ({ prompt: text, model: `model ${text}`, id: `id ${text}` })),
      [XSS],
    )
    const { page } = await pages.open(url, { viewport: { width: 1_280, height: 8_000 } })
    const shown = (selector: string) => page.locator(selector).allTextContents()
    expect(await shown('.prompt')).toEqual(texts)
    const models = texts.map((text) => `model ${text.replace('\n', ' ')}`)
    expect((await shown('#model option')).sort()).toEqual(['All models', ...models].sort())
    expect(await page.locator('img').count()).toBe(texts.length)
    expect(await page.locator('footer').textContent()).toContain(XSS)
    await page.locator('.tile').first().click()
    expect(await shown('#viewer dd')).toContain(`id ${XSS}`)
  })

  it('filters by words, kind, model, label and manifest, and says how many results match', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(place, [
      {
        prompt: 'a red fox',
        model: 'acme/still-1',
        labels: ['spring', XSS],
        manifest: 'shots.yaml',
        row: 'hero',
      },
      { prompt: 'a boat', model: 'acme/cinema-1', paths: [put(place, 'b.mp4', await tinyVideo())] },
      { prompt: 'a blue fox', model: 'acme/still-2', labels: ['spring'] },
    ])
    const { page } = await pages.open(url)
    const prompts = () => page.locator(PROMPTS).allTextContents()
    const total = () => page.locator('#total').textContent()
    const choose = async (name: string, label: string) => {
      await page.getByLabel(name, { exact: true }).selectOption({ label })
      return prompts()
    }
    expect(await total()).toBe('3 results')
    expect(await choose('Kind', 'Video')).toEqual(['a boat'])
    expect(await total()).toBe('1 result')
    await choose('Kind', 'All kinds')
    await page.getByLabel('Search').fill('FOX  a')
    expect(await prompts()).toEqual(['a red fox', 'a blue fox'])
    expect(await choose('Model', 'acme/still-2')).toEqual(['a blue fox'])
    await page.getByLabel('Search').fill('run_0')
    expect(await page.locator('#empty').textContent()).toBe('No results match.')
    expect(await choose('Model', 'All models')).toEqual(['a red fox'])
    await page.getByLabel('Search').fill('hero')
    expect(await prompts()).toEqual(['a red fox'])
    await page.getByLabel('Search').fill('')
    expect(await choose('Label', XSS)).toEqual(['a red fox'])
    expect(await choose('Label', 'spring')).toEqual(['a red fox', 'a blue fox'])
    expect(await choose('Manifest', 'shots.yaml')).toEqual(['a red fox'])
    expect(await page.locator('#grid li:not([hidden]) .name').textContent()).toBe('hero')
    const other = await pages.open(writePage(place, [{}]))
    for (const name of ['label', 'manifest', 'model', 'kind'])
      expect(await other.page.locator(`#${name}`).isHidden()).toBe(true)
  })

  it('shows the variants of one row together, and side by side with what differs', async () => {
    const place = temporaryFolder()
    const paths = ['1.png', '2.png', '3.png'].map((name) => put(place, name))
    const url = writePage(place, [
      {
        prompt: 'a fox, oil',
        row: 'hero',
        manifest: 'shots.yaml',
        paths: [paths[0] ?? ''],
        parameters: ['seed 3'],
      },
      { prompt: 'a boat', paths: [paths[1] ?? ''] },
      {
        prompt: 'a fox',
        row: 'hero',
        manifest: 'shots.yaml',
        paths: [paths[2] ?? ''],
        parameters: ['seed 1'],
      },
    ])
    const { page } = await pages.open(url)
    expect(await page.locator('#grid li').count()).toBe(2)
    expect(await page.locator('#grid li').first().locator('.tile').count()).toBe(2)
    await page.locator('.tile').first().click()
    await page.keyboard.press('c')
    expect(await page.locator('#stage figcaption').allTextContents()).toEqual(['seed 1', 'seed 3'])
    expect(await page.locator('#viewer dl').textContent()).toContain('Variant1 of 2')
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('.current figcaption').textContent()).toBe('seed 3')
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('#compare').isHidden()).toBe(true)
  })

  it('can be used with the keyboard alone', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(
      place,
      Array.from({ length: 30 }, (_, at) => ({ prompt: `prompt ${at}` })),
    )
    const { page } = await pages.open(url)
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    await page.locator('.tile').nth(1).focus()
    await press('Enter')
    const dialog = page.locator('#viewer')
    expect(await dialog.isVisible()).toBe(true)
    await press('ArrowRight', 'ArrowRight')
    expect(await dialog.locator('#prompt').textContent()).toBe('prompt 3')
    await press('ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft')
    expect(await dialog.locator('#prompt').textContent()).toBe('prompt 0')
    await press('ArrowRight', 'Escape')
    expect(await dialog.isVisible()).toBe(false)
    // By an event that comes after the key.
    await expect.poll(() => focusedTile(page)).toBe('Image: prompt 1')
  })

  it('copies the run id and the prompt from disk, also where a page has no access to the clipboard', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const prompt = `it's </script>`
    const url = writePage(place, [{ prompt }])
    for (const hasClipboard of [true, false]) {
      const { page } = await pages.open(url, { permissions: ['clipboard-read', 'clipboard-write'] })
      if (!hasClipboard)
        await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
      // What is pasted is what was copied.
      const pasted = async () => {
        await page.locator('#viewer').press('Escape')
        await page.getByLabel('Search').fill('')
        await page.getByLabel('Search').press('Control+V')
        return page.getByLabel('Search').inputValue()
      }
      for (const [name, text] of [
        ['Copy run id', 'run_0'],
        ['Copy prompt', prompt],
      ] as const) {
        await page.locator('.tile').first().click()
        await page.getByRole('button', { name }).click()
        await page.locator('#said', { hasText: 'Copied' }).waitFor()
        expect(await pasted()).toBe(text)
        await page.getByLabel('Search').fill('')
      }
    }
  })

  it('shows when a file is missing or cannot be displayed', async () => {
    const place = temporaryFolder()
    put(place, 'broken.mp4', 'no video')
    put(place, 'model.glb', 'x')
    const url = writePage(place, [
      { paths: ['gone.png'] },
      { paths: ['broken.mp4'] },
      { paths: ['model.glb'] },
    ])
    const { page } = await pages.open(url, { ignored: /ERR_FILE_NOT_FOUND/ })
    await page.locator('.card', { hasText: 'PNG' }).waitFor()
    await page.locator('.card', { hasText: 'MP4' }).waitFor()
    await page.locator('.card', { hasText: 'GLB' }).waitFor()
    await page.locator('.tile').first().click()
    expect(await page.locator('.missing').textContent()).toMatch(/moved or deleted/)
  })

  it('loads only media near the window, with 5,000 results', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const film = put(place, 'b.mp4', await tinyVideo())
    const url = writePage(
      place,
      Array.from({ length: 5_000 }, (_, at) => ({
        prompt: `prompt ${at}`,
        ...(at % 2 === 1 && { paths: [film] }),
      })),
    )
    const { page } = await pages.open(url)
    expect(await page.locator('#total').textContent()).toBe('5,000 results')
    await becomesTrue(page, "document.querySelector('video').readyState > 0")
    expect(await page.evaluate<number>("document.querySelectorAll('video[src]').length")).toBeLessThan(60)
    await page.locator('.tile').last().focus()
    expect(await focusedTile(page)).toBe('Video: prompt 4999')
    await becomesTrue(page, "[...document.querySelectorAll('video')].at(-1).readyState > 0")
  })

  it.each([
    [360, 'light'],
    [1_280, 'dark'],
  ] as const)('is accessible and fits %i pixels, %s', async (width, colorScheme) => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const film = put(place, 'b.mp4', await tinyVideo())
    const url = writePage(
      place,
      [
        {},
        { paths: [film, 'a.png'], model: 'acme/cinema-1', labels: ['spring'] },
        { prompt: 'x'.repeat(400) },
      ],
      ['Written 2026-01-01.'],
    )
    const { page } = await pages.open(url, {
      viewport: { width, height: 740 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    await expectAccessible(page, ANY_IMPACT)
    for (const at of [0, 1]) {
      await page.locator('.tile').nth(at).click()
      await expectAccessible(page, ANY_IMPACT)
      await page.keyboard.press('Escape')
    }
  })

  it('shows a message when it is empty', async () => {
    const { page } = await pages.open(writePage(temporaryFolder(), []))
    expect(await page.locator('#empty').textContent()).toBe('No results yet.')
    expect(await page.locator('#total').textContent()).toBe('0 results')
  })
})

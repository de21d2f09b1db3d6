/** The page in a real Chromium, from disk. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import axe from 'axe-core'
import fc from 'fast-check'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { type GalleryFile, type GalleryRun, galleryHtml, linkTo, mediaOf } from '../../src/gallery/index.js'
import { printable } from '../../src/protocol/text.js'
import { anyCharacter } from '../support/any-character.js'
import { becomesTrue, describePages } from '../support/browser.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'
import { tinyVideo } from '../support/tiny-video.js'

const XSS = '</script><img src=x onerror=alert(1)>'

/** An image of one colour, as SVG, because its size can be chosen. */
const svg = (width: number, height: number) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="teal"/></svg>`

interface Given extends Partial<Omit<GalleryRun, 'files'>> {
  /** Paths in the folder of the page. */
  readonly paths?: readonly string[]
  readonly ratio?: number
  readonly marks?: string
}

/** Writes a page with these runs; its URL. Files are not written. */
function writePage(place: string, given: readonly Given[], notes: readonly string[] = []): string {
  const runs = given.map(({ paths = ['a.png'], ratio = 1, marks, ...more }, at): GalleryRun => {
    const files = paths.map((path): GalleryFile => {
      const media = mediaOf(path)
      const link = linkTo(place, join(place, path), posix)
      return { ...link, media, size: '1.5 KiB', ratio, marks, isOpened: true }
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

const focusedPrompt = (page: Page) =>
  page.evaluate<string>("document.activeElement?.querySelector('.prompt')?.textContent")

interface Violation {
  readonly id: string
  readonly impact?: string | null
  readonly nodes: readonly { readonly html: string }[]
}

describePages('the page of rushes gallery', (pages) => {
  it('shows every picture, whatever its file is called, and asks nothing of the network', async () => {
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
    const text = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 40 }),
      fc.constantFrom(XSS, '<!--<script>', '\u202eabc', '&lt;'),
    )
    const samples = fc.sample(fc.tuple(text, text, text), { numRuns: 20, seed: 7 })
    put(place, 'a.png')
    const url = writePage(
      place,
      samples.map(([prompt, model, id]) => ({ prompt: `p${prompt}`, model: `m${model}`, id: `i${id}` })),
      [XSS],
    )
    const { page } = await pages.open(url, { viewport: { width: 1_280, height: 8_000 } })
    const shown = (selector: string) => page.locator(selector).allTextContents()
    // A lone half of a pair cannot be in a document.
    const asText = (value: string) => value.toWellFormed()
    expect(await shown('.tile .prompt')).toEqual(
      samples.map(([prompt]) =>
        asText(
          `p${prompt}`
            .split(/\r\n|[\n\r]/)
            .map(printable)
            .join('\n')
            .trim(),
        ),
      ),
    )
    expect((await shown('#model option')).sort()).toEqual(
      ['All models', ...new Set(samples.map(([, model]) => asText(printable(`m${model}`))))].sort(),
    )
    expect(await page.locator('img').count()).toBe(samples.length)
    expect(await page.locator('footer').textContent()).toContain(XSS)
    await page.locator('.tile').nth(3).click()
    expect(await shown('#viewer dd')).toContain(asText(printable(`i${samples[3]?.[2]}`)))
  })

  it('filters by kind, model and words, and says how many results match', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(place, [
      { prompt: 'a red fox', model: 'acme/still-1' },
      { prompt: 'a boat', model: 'acme/cinema-1', paths: [put(place, 'b.mp4', await tinyVideo())] },
      { prompt: 'a blue fox', model: 'acme/still-2' },
    ])
    const { page } = await pages.open(url)
    const prompts = () => page.locator('.tile .prompt').allTextContents()
    const total = () => page.locator('#total').textContent()
    expect(await total()).toBe('3 results')
    await page.getByRole('button', { name: 'Videos' }).click()
    expect(await prompts()).toEqual(['a boat'])
    expect(await total()).toBe('1 of 3 results')
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await page.getByLabel('Search').fill('FOX  a')
    expect(await prompts()).toEqual(['a red fox', 'a blue fox'])
    await page.getByLabel('Model', { exact: true }).selectOption('acme/still-2')
    expect(await prompts()).toEqual(['a blue fox'])
    await page.getByLabel('Search').fill('run_0')
    expect(await page.locator('#empty').textContent()).toBe('No result matches these filters.')
    await page.getByLabel('Model', { exact: true }).selectOption('')
    expect(await prompts()).toEqual(['a red fox'])
    await page.keyboard.press('/')
    await page.keyboard.press('Escape')
    expect(await total()).toBe('3 results')
  })

  it('groups by label, and has no such filter without labels', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(place, [
      { prompt: 'fox', labels: ['spring', XSS] },
      { prompt: 'hen', labels: ['spring'] },
      { prompt: 'cow' },
    ])
    const { page } = await pages.open(url)
    const label = page.getByLabel('Label', { exact: true })
    const found = async (value: string) => {
      await label.selectOption({ label: value })
      return page.locator('.tile .prompt').allTextContents()
    }
    expect(await label.locator('option').allTextContents()).toEqual([...['All labels', XSS, 'spring']])
    expect(await found('spring')).toEqual(['fox', 'hen'])
    expect(await found(XSS)).toEqual(['fox'])
    expect(await found('All labels')).toEqual(['fox', 'hen', 'cow'])
    await page.getByLabel('Search').fill('SPRING')
    await page.locator('.tile').first().click()
    expect(await page.locator('#viewer dl').textContent()).toContain(`Labelsspring, ${XSS}`)
    const other = await pages.open(writePage(place, [{}]))
    expect(await other.page.locator('#label').isHidden()).toBe(true)
  })

  it('can be used with the keys alone', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(place, [
      ...Array.from({ length: 30 }, (_, at) => ({ prompt: `prompt ${at}` })),
      { prompt: 'film', paths: [put(place, 'b.mp4', await tinyVideo())] },
    ])
    const { page } = await pages.open(url)
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    await press('ArrowRight')
    expect(await focusedPrompt(page)).toBe('prompt 0')
    await press('ArrowRight', 'ArrowDown', 'ArrowUp')
    expect(await focusedPrompt(page)).toBe('prompt 1')
    await press('Enter')
    const dialog = page.locator('#viewer')
    expect(await dialog.isVisible()).toBe(true)
    await press('ArrowRight', 'ArrowRight')
    expect(await dialog.locator('[data-part="prompt"]').textContent()).toBe('prompt 3')
    await press('Escape')
    expect(await dialog.isVisible()).toBe(false)
    // By an event that comes after the key.
    await expect.poll(() => focusedPrompt(page)).toBe('prompt 3')
    await press('/')
    await page.keyboard.type('film')
    await press('Enter')
    expect(await focusedPrompt(page)).toBe('film')
    const isPaused = () => page.evaluate<boolean>("document.querySelector('.tile video').paused")
    expect(await isPaused()).toBe(true)
    await press('Space')
    await becomesTrue(page, "!document.querySelector('.tile video').paused")
    await press('Space')
    expect(await isPaused()).toBe(true)
    expect(await dialog.isVisible()).toBe(false)
    await press('Space', 'Enter')
    expect(await isPaused()).toBe(true)
    await press('Escape')
    await expect.poll(() => focusedPrompt(page)).toBe('film')
    // Tab leads into the grid once, and out of it.
    await press('/', 'Escape', 'Escape')
    expect(await page.locator('.tile[tabindex="0"]').count()).toBe(1)
    await press('End')
    expect(await focusedPrompt(page)).toBe('film')
  })

  it('shows that a file has marks, which are not verified', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const { page } = await pages.open(writePage(place, [{ marks: 'Content Credentials' }, {}]))
    const said = 'Content Credentials (not verified)'
    // The title is shown only for the element that is under the pointer.
    const badge = await page.locator('.marked').boundingBox()
    await page.mouse.move((badge?.x ?? 0) + 5, (badge?.y ?? 0) + 5)
    expect(await page.evaluate("document.querySelector('.marked:hover')?.title")).toBe(said)
    await page.locator('.tile').first().click()
    expect(await page.locator('#viewer dl').textContent()).toContain(`Marks${said}`)
  })

  it('copies the run id and the command from disk, also where a page has no access to the clipboard', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const again = `rushes run image 'it'\\''s </script>' --local`
    const url = writePage(place, [{ again }])
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
        ['Copy command', again],
        ['Copy run id', 'run_0'],
      ] as const) {
        await page.locator('.tile').first().click()
        await page.getByRole('button', { name }).click()
        await page.locator('[data-part="said"]', { hasText: 'Copied' }).waitFor()
        expect(await pasted()).toBe(text)
        await page.getByLabel('Search').fill('')
      }
    }
  })

  it('says so when a file is gone or cannot be shown', async () => {
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
    // The text has a margin, also where a picture has none.
    await page.setViewportSize({ width: 360, height: 740 })
    const margin = await page.locator('.missing').evaluate((element) => {
      const text = document.createRange()
      text.selectNodeContents(element)
      return text.getBoundingClientRect().left
    })
    expect(margin).toBeGreaterThanOrEqual(16)
  })

  it('keeps few results in the document, however many there are', async () => {
    const place = temporaryFolder()
    put(place, 'a.png')
    const url = writePage(
      place,
      Array.from({ length: 5_000 }, (_, at) => ({
        prompt: `prompt ${at}`,
        ratio: [1, 1.78, 0.56][at % 3] ?? 1,
      })),
    )
    const { page } = await pages.open(url)
    const count = () => page.locator('.tile').count()
    expect(await page.locator('#total').textContent()).toBe('5,000 results')
    expect(await count()).toBeLessThan(60)
    await page.locator('.tile').first().focus()
    await page.keyboard.press('End')
    expect(await focusedPrompt(page)).toBe('prompt 4999')
    expect(await count()).toBeLessThan(60)
    const last = page.locator('.tile').last()
    expect(await last.textContent()).toContain('prompt 4999')
    expect(await page.locator('li').last().getAttribute('aria-posinset')).toBe('5000')
    await page.setViewportSize({ width: 700, height: 900 })
    await page.keyboard.press('ArrowLeft')
    expect(await focusedPrompt(page)).toBe('prompt 4998')
  })

  it('takes the ratio that a picture turns out to have', async () => {
    const place = temporaryFolder()
    const url = writePage(place, [{ paths: [put(place, 'wide.svg', svg(400, 200))] }])
    const { page } = await pages.open(url)
    const frame = "document.querySelector('.frame')"
    await becomesTrue(page, `Math.abs(${frame}?.clientWidth / ${frame}?.clientHeight - 2) < 0.05`)
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
        { again: 'rushes run image x' },
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
    const violations = async () => {
      await page.evaluate(axe.source)
      const { violations: found } = await page.evaluate<{ violations: Violation[] }>('axe.run()')
      return found.map(({ id, impact, nodes }) => [id, impact, nodes[0]?.html])
    }
    const overflow = () =>
      page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect(await violations()).toEqual([])
    expect(await overflow()).toBeLessThanOrEqual(0)
    for (const at of [0, 1]) {
      await page.locator('.tile').nth(at).click()
      expect(await violations()).toEqual([])
      expect(await overflow()).toBeLessThanOrEqual(0)
      await page.keyboard.press('Escape')
    }
  })

  it('says that it is empty', async () => {
    const { page } = await pages.open(writePage(temporaryFolder(), []))
    expect(await page.locator('#empty').textContent()).toBe('No results yet.')
    expect(await page.locator('#total').textContent()).toBe('0 results')
  })
})

/** The thumbnails of the list of runs in a real browser. */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, it } from 'vitest'
import type { Engine } from '../../src/service/engines/engine.js'
import { describePages, type OpenedPage } from '../support/browser.js'
import { PATIENCE, servePage } from './service-with-page.js'

/** 24 by 12 pixels, which browsers show and the service does not read. */
const BMP = Buffer.alloc(54 + 24 * 12 * 4, 0x80)
BMP.write('BM')
BMP.writeUInt32LE(BMP.length, 2)
for (const [offset, value] of [
  [10, 54],
  [14, 40],
  [18, 24],
  [22, 12],
  [30, 0],
  [34, 0],
  [46, 0],
  [50, 0],
] as const)
  BMP.writeUInt32LE(value, offset)
BMP.writeUInt32LE(0x200001, 26)

const PICTURE = await sharp({ create: { width: 640, height: 320, channels: 3, background: 'teal' } })
  .png()
  .toBuffer()

const engineOf = (name: string, contentType: string, bytes: Uint8Array): Engine => ({
  async render({ folder }) {
    await writeFile(join(folder, name), bytes)
    return [{ name, contentType }]
  },
})

const widths = ({ page }: OpenedPage) =>
  page.evaluate<number[]>(
    `[...document.querySelectorAll('.run-thumb img')].map((image) => image.naturalWidth)`,
  )

const requestsFor = ({ requests }: OpenedPage, part: string) => requests.filter((url) => url.includes(part))

describePages('thumbnails', (pages) => {
  it('are all that the list loads, and are loaded once', async () => {
    const service = await servePage(pages, { engine: engineOf('fox.png', 'image/png', PICTURE) })
    for (const prompt of ['one', 'two', 'three']) await service.create({ prompt })
    const opened = await service.open('#/runs')
    await expect.poll(() => widths(opened), PATIENCE).toEqual([160, 160, 160])
    expect(requestsFor(opened, '/outputs/')).toEqual([])
    expect(requestsFor(opened, '/thumbnail').length).toBe(3)

    const received: boolean[] = []
    opened.page.on('response', async (response) => {
      if (response.url().endsWith('/thumbnail')) received.push(response.status() === 200)
    })
    const transferred = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/thumbnail')).map(({ transferSize }) => transferSize)`
    await opened.page.reload()
    await expect.poll(() => widths(opened), PATIENCE).toEqual([160, 160, 160])
    // From the cache of the browser.
    expect(await opened.page.evaluate(transferred)).toEqual([0, 0, 0])
    expect(received).toEqual([true, true, true])
  })

  it('of a BMP, which the service does not read, is the picture itself', async () => {
    const service = await servePage(pages, { engine: engineOf('fox.bmp', 'image/bmp', BMP) })
    await service.create({ prompt: 'a fox' })
    const opened = await service.open('#/runs')
    await expect.poll(() => widths(opened), PATIENCE).toEqual([24])
    expect([requestsFor(opened, '/thumbnail').length, requestsFor(opened, '/outputs/').length]).toEqual([
      0, 1,
    ])
  })

  it('of a damaged picture is the icon of its kind, and the picture is not loaded', async () => {
    const bytes = PICTURE.subarray(0, PICTURE.length - 40)
    const service = await servePage(pages, { engine: engineOf('fox.png', 'image/png', bytes) })
    await service.create({ prompt: 'a fox' })
    const opened = await service.open('#/runs', { ignored: /status of 404/ })
    await opened.page.locator('.thumb-empty').waitFor()
    expect([requestsFor(opened, '/thumbnail').length, requestsFor(opened, '/outputs/').length]).toEqual([
      1, 0,
    ])
  })

  it('of a file that was removed is the icon of its kind', async () => {
    const service = await servePage(pages, { engine: engineOf('fox.png', 'image/png', PICTURE) })
    await service.create({ prompt: 'a fox' })
    const first = await service.open('#/runs')
    await expect.poll(() => widths(first), PATIENCE).toEqual([160])
    const outputs = join(service.dataFolder, 'outputs')
    for (const name of await readdir(outputs)) await rm(join(outputs, name), { recursive: true })
    const opened = await service.open('#/runs', { ignored: /status of 410/ })
    await opened.page.locator('.thumb-empty').waitFor()
    expect([requestsFor(opened, '/thumbnail').length, requestsFor(opened, '/outputs/').length]).toEqual([
      1, 0,
    ])
  })

  it('are whole pictures where the service makes none', async () => {
    const engine = engineOf('fox.png', 'image/png', PICTURE)
    const service = await servePage(pages, { engine, thumbnailEngine: undefined })
    await service.create({ prompt: 'a fox' })
    const opened = await service.open('#/runs')
    await expect.poll(() => widths(opened), PATIENCE).toEqual([640])
    expect(requestsFor(opened, '/thumbnail')).toEqual([])
  })
})

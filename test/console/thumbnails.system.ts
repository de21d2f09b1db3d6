/** The thumbnails of the list of runs in a real browser. */
import { readdirSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, it } from 'vitest'
import type { Engine } from '../../src/service/engines/engine.js'
import { describePages, type OpenedPage } from '../support/browser.js'
import { servePage } from './service-with-page.js'

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

const FILES: Readonly<Record<string, readonly [name: string, contentType: string, bytes: Uint8Array]>> = {
  fox: ['fox.png', 'image/png', PICTURE],
  BMP: ['fox.bmp', 'image/bmp', BMP],
  damaged: ['fox.png', 'image/png', PICTURE.subarray(0, PICTURE.length - 40)],
}

/** Makes what the prompt names. */
const engine: Engine = {
  async render({ input, folder }) {
    const [name, contentType, bytes] = FILES[String(input.prompt)] ?? ['', '', BMP]
    await writeFile(join(folder, name), bytes)
    return [{ name, contentType }]
  },
}

const widths = ({ page }: OpenedPage) =>
  page.evaluate<number[]>(
    `[...document.querySelectorAll('.run-thumb img')].map((image) => image.naturalWidth)`,
  )

const requestsFor = ({ requests }: OpenedPage, part: string) => requests.filter((url) => url.includes(part))

describePages('thumbnails', (pages) => {
  it('load once, and the list loads no other images', async () => {
    const service = await servePage(pages, { engine })
    for (let count = 0; count < 3; count++) await service.create({ prompt: 'fox' })
    const opened = await service.open('#/runs')
    await expect.poll(() => widths(opened)).toEqual([384, 384, 384])
    expect(requestsFor(opened, '/outputs/')).toEqual([])
    expect(requestsFor(opened, '/thumbnail').length).toBe(3)

    const received: boolean[] = []
    opened.page.on('response', async (response) => {
      if (response.url().endsWith('/thumbnail')) received.push(response.status() === 200)
    })
    const transferred = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/thumbnail')).map(({ transferSize }) => transferSize)`
    await opened.page.reload()
    await expect.poll(() => widths(opened)).toEqual([384, 384, 384])
    // From the cache of the browser.
    expect(await opened.page.evaluate(transferred)).toEqual([0, 0, 0])
    expect(received).toEqual([true, true, true])
  })

  it('show an icon for a lost picture, and the original where the service cannot decode it', async () => {
    const service = await servePage(pages, { engine })
    await service.create({ prompt: 'fox' })
    const outputs = join(service.dataFolder, 'outputs')
    for (const name of readdirSync(outputs)) rmSync(join(outputs, name), { recursive: true })
    for (const prompt of ['BMP', 'damaged']) await service.create({ prompt })
    const opened = await service.open('#/runs', { ignored: /status of (404|410)/ })
    await expect.poll(() => opened.page.locator('.thumb-empty').count()).toBe(2)
    await expect.poll(() => widths(opened)).toEqual([24])
    expect(requestsFor(opened, '/thumbnail')).toHaveLength(2)
    expect(requestsFor(opened, '/outputs/')).toEqual([expect.stringContaining('fox.bmp')])
  })
})

import { readdir, rm } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { render } from './support/job.js'

const basic = (prompt: string) => ({ prompt, aspect_ratio: '1:1', quality: 'basic' })

test('a basic picture is a whole PNG of about a megapixel, the same each time, another for another prompt', async () => {
  const fox = await render('image', basic('a red fox at dusk'))
  const again = await render('image', basic('a red fox at dusk'))
  const boat = await render('image', basic('a boat at dawn'))
  expect(fox.contentType).toBe('image/png')
  expect(await sharp(fox.bytes).metadata()).toMatchObject({
    format: 'png',
    width: 1024,
    height: 1024,
    channels: 3,
  })
  expect(fox.bytes.equals(again.bytes)).toBe(true)
  expect(fox.progress.at(-1)).toBe(1)
  expect(await readdir(fox.folder)).toEqual(['picture.png'])
  const [one, other] = await Promise.all([fox, boat].map(({ bytes }) => sharp(bytes).stats()))
  const distance = one?.channels.map((channel, index) =>
    Math.abs(channel.mean - (other?.channels[index]?.mean ?? 0)),
  )
  expect(Math.max(...(distance ?? [0]))).toBeGreaterThan(8)
  await Promise.all([fox, again, boat].map(({ folder }) => rm(folder, { recursive: true })))
})

test('several runs of one input are different pictures, and the same run is the same one', async () => {
  const draw = (id: string) => render('image', basic('a red fox at dusk'), [], '', { id, model: 'x' })
  const [one, other, again] = await Promise.all(['run_1', 'run_2', 'run_1'].map(draw))
  expect(one?.bytes.equals(other?.bytes ?? Buffer.alloc(0))).toBe(false)
  expect(one?.bytes.equals(again?.bytes ?? Buffer.alloc(0))).toBe(true)
  await Promise.all([one, other, again].map((each) => rm(each?.folder ?? '', { recursive: true })))
})

test.each([
  ['2:3', 836, 1254],
  ['3:2', 1254, 836],
  ['3:4', 888, 1184],
  ['4:3', 1184, 888],
  ['9:16', 774, 1376],
  ['16:9', 1376, 774],
  ['21:9', 1568, 672],
])('a basic picture of %s is %i x %i', async (aspect_ratio, width, height) => {
  const { bytes, folder } = await render('image', { ...basic('a fox'), aspect_ratio })
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'png', width, height })
  await rm(folder, { recursive: true })
})

test('a picture of high quality has 3840 pixels on its longer side', async () => {
  const { bytes, folder } = await render('image', { prompt: 'hills', aspect_ratio: '21:9', quality: 'high' })
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'png', width: 3840, height: 1646 })
  await rm(folder, { recursive: true })
})

test('references are placed in it: one fills the frame, several lie on it, bad ones are labelled', async () => {
  const magenta = await sharp({ create: { width: 90, height: 60, channels: 3, background: '#ff00ff' } })
    .png()
    .toBuffer()
  const share = async (bytes: Buffer) => {
    const pixels = await sharp(bytes).raw().toBuffer()
    let count = 0
    for (let at = 0; at < pixels.length; at += 3) {
      if (pixels[at] === 255 && pixels[at + 1] === 0 && pixels[at + 2] === 255) count++
    }
    return count / (pixels.length / 3)
  }
  const alone = await render('image', basic('x'), [magenta])
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
  const several = await render('image', basic('x'), [
    magenta,
    undefined,
    magenta.subarray(0, 60),
    svg,
    magenta,
  ])
  expect(await share(alone.bytes)).toBeGreaterThan(0.4)
  expect(await share(several.bytes)).toBeGreaterThan(0.05)
  expect(await share(several.bytes)).toBeLessThan(0.4)
  await Promise.all([alone, several].map(({ folder }) => rm(folder, { recursive: true })))
})

test.each([
  ['nothing', ''],
  ['a blank', ' '],
  ['controls', '\u0000\u001b'],
  ['an emoji', '🦊'],
  ['Japanese', '東京の狐'],
  ['marks of XML', '"<&>\''],
  ['200,000 letters', 'x'.repeat(200_000)],
])('a prompt of %s is no trouble', async (_, prompt) => {
  const { bytes, folder } = await render('image', basic(prompt))
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 1024, height: 1024 })
  await rm(folder, { recursive: true })
})

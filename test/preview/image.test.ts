import { readdir } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { render } from './support/job.js'
import { plainPicture } from './support/pictures.js'

const basic = (prompt: string) => ({ prompt, aspect_ratio: '1:1', quality: 'basic' })

test('a basic picture is a PNG of its ratio: the same for one run, different for another run or prompt', async () => {
  const draw = (prompt: string, id: string) =>
    render('image', { ...basic(prompt), aspect_ratio: '16:9' }, [], { id, model: 'x' })
  const fox = await draw('a red fox at dusk', 'run_1')
  const again = await draw('a red fox at dusk', 'run_1')
  const otherRun = await draw('a red fox at dusk', 'run_2')
  const boat = await draw('a boat at dawn', 'run_1')
  expect(fox.contentType).toBe('image/png')
  expect(await sharp(fox.bytes).metadata()).toMatchObject({
    format: 'png',
    width: 1376,
    height: 774,
    channels: 3,
  })
  expect(fox.bytes.equals(again.bytes)).toBe(true)
  expect(fox.bytes.equals(otherRun.bytes)).toBe(false)
  expect(fox.progress.at(-1)).toBe(1)
  expect(await readdir(fox.folder)).toEqual(['picture.png'])
  const [one, other] = await Promise.all([fox, boat].map(({ bytes }) => sharp(bytes).stats()))
  const distance = one?.channels.map((channel, index) =>
    Math.abs(channel.mean - (other?.channels[index]?.mean ?? 0)),
  )
  expect(Math.max(...(distance ?? [0]))).toBeGreaterThan(8)
})

const magentaPicture = () => plainPicture('#ff00ff', 90, 60).png().toBuffer()

/** The share of pixels that are magenta. */
async function magentaShare(bytes: Buffer): Promise<number> {
  const pixels = await sharp(bytes).raw().toBuffer()
  let count = 0
  for (let at = 0; at < pixels.length; at += 3)
    if (pixels[at] === 255 && pixels[at + 1] === 0 && pixels[at + 2] === 255) count++
  return count / (pixels.length / 3)
}

test('one reference is small beside the subject, several are prints, and invalid ones have a label', async () => {
  const magenta = await magentaPicture()
  const alone = await render('image', basic('a fox'), [magenta])
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
  const images = [magenta, undefined, magenta.subarray(0, 60), svg, magenta]
  const several = await render('image', basic('a fox'), images)
  for (const { bytes } of [alone, several]) {
    expect(await magentaShare(bytes)).toBeGreaterThan(0.03)
    expect(await magentaShare(bytes)).toBeLessThan(0.3)
  }
})

test('five portraits with one reference are five different pictures', async () => {
  const magenta = await magentaPicture()
  const places = [
    'on a beach at noon',
    'in the rain at night',
    'in a forest at dusk',
    'in snow',
    'in a city at dawn',
  ]
  const pictures = await Promise.all(
    places.map(async (place) => {
      const { bytes } = await render('image', basic(`portrait of a woman ${place}`), [magenta])
      return sharp(bytes).resize(8, 8, { fit: 'fill' }).raw().toBuffer()
    }),
  )
  for (const [at, one] of pictures.entries())
    for (const other of pictures.slice(at + 1)) {
      const distance =
        one.reduce((sum, value, index) => sum + Math.abs(value - (other[index] ?? 0)), 0) / one.length
      expect(distance).toBeGreaterThan(20)
    }
})

test('fresh snow is white by day and stays the lightest land at dawn', async () => {
  for (const prompt of ['a red fox in fresh snow at dawn', 'fresh snow in a village at noon']) {
    const { bytes } = await render('image', basic(prompt))
    const snow = sharp(bytes).extract({ left: 700, top: 800, width: 300, height: 40 })
    const { channels } = await sharp(await snow.toBuffer()).stats()
    for (const { mean } of channels) expect(mean, prompt).toBeGreaterThan(205)
  }
})

const ODD = ['\u0000\u001b', '🦊', '東京の狐', '"<&>\'', 'x'.repeat(200_000)]

test.each([
  ['nothing', ''],
  ['controls, an emoji, Japanese, marks of XML and 200,000 letters', ODD.join(' ')],
])('a prompt with %s becomes a picture', async (_, prompt) => {
  const { bytes } = await render('image', basic(prompt))
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 1024, height: 1024 })
})

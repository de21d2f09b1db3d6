import { readdir } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { render } from './support/job.js'

const basic = (prompt: string) => ({ prompt, aspect_ratio: '1:1', quality: 'basic' })

test('a basic picture is a PNG of its ratio, the same for one run, another for another run or prompt', async () => {
  const draw = (prompt: string, id: string) =>
    render('image', { ...basic(prompt), aspect_ratio: '16:9' }, [], '', { id, model: 'x' })
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
})

const ODD = ['\u0000\u001b', '🦊', '東京の狐', '"<&>\'', 'x'.repeat(200_000)]

test.each([
  ['nothing', ''],
  ['controls, an emoji, Japanese, marks of XML and 200,000 letters', ODD.join(' ')],
])('a prompt of %s is drawn', async (_, prompt) => {
  const { bytes } = await render('image', basic(prompt))
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 1024, height: 1024 })
})

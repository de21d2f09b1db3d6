import { readdir } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { render } from './support/job.js'

const basic = (prompt: string) => ({ prompt, aspect_ratio: '1:1', quality: 'basic' })

test('a basic picture is a PNG of its ratio: the same for one seed, different for another seed or prompt', async () => {
  const draw = (prompt: string, seed: number) =>
    render('image', { ...basic(prompt), aspect_ratio: '16:9', seed })
  const fox = await draw('a red fox at dusk', 1)
  expect(fox.contentType).toBe('image/png')
  expect(await sharp(fox.bytes).metadata()).toMatchObject({
    format: 'png',
    width: 1376,
    height: 774,
    channels: 3,
  })
  expect(fox.progress.at(-1)).toBe(1)
  expect(await readdir(fox.folder)).toEqual(['picture.png'])
  expect((await draw('a red fox at dusk', 1)).bytes.equals(fox.bytes)).toBe(true)
  expect((await draw('a red fox at dusk', 2)).bytes.equals(fox.bytes)).toBe(false)
  expect((await draw('a red fox at dawn', 1)).bytes.equals(fox.bytes)).toBe(false)
})

const ODD = ['\u0000\u001b', '🦊', '東京の狐', '"<&>\'', 'x'.repeat(200_000)]

test.each([
  ['nothing', ''],
  ['controls, an emoji, Japanese, marks of XML and 200,000 letters', ODD.join(' ')],
])('a prompt with %s becomes a picture', async (_, prompt) => {
  const { bytes } = await render('image', basic(prompt))
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 1024, height: 1024 })
})

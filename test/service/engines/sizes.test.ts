/** Width and height of a run, from the table and from `sizes`. */
import { expect, test } from 'vitest'
import { readModelDocument } from '../../../src/protocol/model-document.js'
import type { Kind } from '../../../src/protocol/models.js'
import { EngineSettings } from '../../../src/service/engines/settings.js'
import { readSizes, sizeText } from '../../../src/service/engines/sizes.js'

function sizesOf(kind: Kind, sizes: Readonly<Record<string, string>> = {}, input: object = {}) {
  const fail = (path: readonly (string | number)[], message: string): never => {
    throw new Error(`${path.join('.')}: ${message}`)
  }
  const document = readModelDocument({ name: 'acme/model', kind, input }, fail)
  if (document === undefined) throw new Error('invalid document')
  const settings = new EngineSettings({ engine: { sizes }, report: fail, folder: '.', env: {} })
  const read = readSizes(settings, document, [])
  return (...values: readonly (string | undefined)[]) => {
    const [aspect_ratio, other] = values
    return sizeText(
      read.sizeOf({ aspect_ratio, ...(kind === 'video' ? { resolution: other } : { quality: other }) }),
    )
  }
}

test.each([
  ['1:1', '1024x1024'],
  ['3:2', '1216x832'],
  ['2:3', '832x1216'],
  ['4:3', '1152x896'],
  ['3:4', '896x1152'],
  ['16:9', '1344x768'],
  ['9:16', '768x1344'],
  ['21:9', '1536x640'],
  // Computed.
  ['5:4', '1152x896'],
  ['nonsense', '1024x1024'],
])('an image of %s is %s', (ratio, size) => {
  expect(sizesOf('image')(ratio, 'basic')).toBe(size)
})

test.each([
  ['16:9', '720p', '1280x720'],
  ['9:16', '720p', '720x1280'],
  ['16:9', '1080p', '1920x1088'],
  ['9:16', '1080p', '1088x1920'],
  ['4:3', '720p', '960x720'],
  ['1:1', '1080p', '1088x1088'],
  ['21:9', '720p', '1680x720'],
])('a video of %s at %s is %s', (ratio, resolution, size) => {
  expect(sizesOf('video')(ratio, resolution)).toBe(size)
})

test('the sizes of the model file are those of the ratio, and longer for a higher resolution or quality', () => {
  const video = sizesOf('video', { '16:9': '832x480' })
  expect([video('16:9', '720p'), video('16:9', '1080p'), video('1:1', '720p')]).toEqual([
    '832x480',
    '1248x720',
    '720x720',
  ])
  const image = sizesOf('image', { '1:1': '1328x1328' })
  expect([image('1:1', 'basic'), image('1:1', 'high'), image('4:3', 'high')]).toEqual([
    '1328x1328',
    '1984x1984',
    '1728x1344',
  ])
})

test('a run without a value has the size of the default value in sizes', () => {
  const image = sizesOf('image', { '1:1': '512x512', '16:9': '832x480' })
  expect([image(undefined, undefined), image(undefined, 'high'), image('16:9', undefined)]).toEqual([
    '512x512',
    '768x768',
    '832x480',
  ])
  const video = sizesOf('video', { '16:9': '832x480' })
  expect([video(undefined, undefined), video('16:9', undefined)]).toEqual(['832x480', '832x480'])
})

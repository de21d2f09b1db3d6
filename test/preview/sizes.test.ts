import { expect, test } from 'vitest'
import { imageSize, videoSize } from '../../src/preview/size.js'

const IMAGES: readonly [string, string, string][] = [
  ['1:1', '1024x1024', '3840x3840'],
  ['2:3', '836x1254', '2560x3840'],
  ['3:4', '888x1184', '2880x3840'],
  ['16:9', '1376x774', '3840x2160'],
  ['21:9', '1568x672', '3840x1646'],
]

const VIDEOS: readonly [string, string, string][] = [
  ['16:9', '1280x720', '1920x1080'],
  ['9:16', '720x1280', '1080x1920'],
  ['1:1', '720x720', '1080x1080'],
  ['21:9', '1680x720', '2520x1080'],
]

const shown = ({ width, height }: { width: number; height: number }) => `${width}x${height}`

test.each(IMAGES)('an image of %s is %s, at high quality %s', (aspect_ratio, basic, high) => {
  expect(shown(imageSize({ aspect_ratio, quality: 'basic' }))).toBe(basic)
  expect(shown(imageSize({ aspect_ratio, quality: 'high' }))).toBe(high)
})

test.each(VIDEOS)('a video of %s is %s, at 1080p %s', (aspect_ratio, standard, full) => {
  expect(shown(videoSize({ aspect_ratio, resolution: '720p' }))).toBe(standard)
  expect(shown(videoSize({ aspect_ratio, resolution: '1080p' }))).toBe(full)
})

/** A few rows of the manifests of examples/ with the real renderer, as docs/examples.md proposes to try them. */
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { bash, createPlace } from './support/binary.js'
import { blocksOf, copyTo } from './support/example-manifests.js'

describe.concurrent('the real renderer', () => {
  it.each([
    ['examples/sprites/sprites.yaml', ['sprites/assets/owl/sheet.png', 'sprites/assets/owl/idle-front.png']],
    [
      'examples/shop/shop.yaml',
      ['shop/assets/pack/front.png', 'shop/assets/sets/trail.png', 'shop/assets/trail/front-story.png'],
    ],
    [
      'examples/trailer/trailer.yaml',
      ['trailer/assets/frames/coast-wide.png', 'trailer/assets/frames/coast-tall.png'],
    ],
  ])('draws a few rows of %s', async (manifest, files) => {
    const place = createPlace()
    copyTo(place.folder)
    const [, attempt = ''] = (blocksOf(manifest)[0] ?? '').split('\n')
    const { code, stdout, stderr } = await bash(place, attempt)
    expect(code, stderr).toBe(0)
    expect(stdout.trim().split('\n').sort()).toEqual(files.map((file) => `examples/${file}`).sort())
    for (const file of files)
      expect((await sharp(join(place.folder, 'examples', file)).metadata()).width).toBeGreaterThan(500)
  })
})

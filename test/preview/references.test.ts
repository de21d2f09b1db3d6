import sharp from 'sharp'
import { expect, test } from 'vitest'
import { drawReferences } from '../../src/preview/overlays.js'
import { settingFor } from '../../src/preview/scene.js'
import { referenceFiles } from './support/job.js'
import { plainPicture } from './support/pictures.js'

const AREA = { left: 10, top: 20, width: 800, height: 400 }
const { palette } = settingFor('x', 1)
const magenta = (width: number, height: number) => plainPicture('#ff00ff', width, height)

const printsOf = (references: readonly (Uint8Array | undefined)[], area = AREA) =>
  drawReferences(referenceFiles(references), area, palette)

/** Whether the middle of a print is magenta, as the reference is. */
const isShown = async ({ input, width, height }: { input: Buffer; width: number; height: number }) => {
  const middle = sharp(input).extract({ left: width >> 1, top: height >> 1, width: 1, height: 1 })
  const [red = 0, green = 0, blue = 0] = await middle.removeAlpha().raw().toBuffer()
  return red > 250 && green < 5 && blue > 250
}

// What is refused, and turned photographs: thumbnail.test.ts.
test('a reference that is missing or refused becomes a placeholder', async () => {
  const sound = await magenta(90, 60).png().toBuffer()
  const prints = await printsOf([sound, sound.subarray(0, 60), undefined, sound])
  expect(await Promise.all(prints.map(isShown))).toEqual([true, false, false, true])
})

test.each([1, 3, 14])('%i reference images are inside their area and do not overlap', async (count) => {
  const sizes = [
    [30, 30],
    [20, 30],
    [50, 1],
    [1, 50],
  ] as const
  const files = await Promise.all(sizes.map(([width, height]) => magenta(width, height).png().toBuffer()))
  const references = Array.from({ length: count }, (_, index) => files[index % files.length])
  for (const area of [AREA, { ...AREA, height: 1_000 }]) {
    const prints = await printsOf(references, area)
    expect(prints).toHaveLength(count)
    for (const [index, one] of prints.entries()) {
      expect(Math.min(one.left - area.left, one.top - area.top)).toBeGreaterThanOrEqual(0)
      expect(one.left + one.width).toBeLessThanOrEqual(area.left + area.width)
      expect(one.top + one.height).toBeLessThanOrEqual(area.top + area.height)
      for (const other of prints.slice(index + 1)) {
        const isBeside = one.left + one.width <= other.left || other.left + other.width <= one.left
        expect(isBeside || one.top + one.height <= other.top || other.top + other.height <= one.top).toBe(
          true,
        )
      }
    }
  }
})

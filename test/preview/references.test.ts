import sharp from 'sharp'
import { expect, test } from 'vitest'
import { loadFont } from '../../src/preview/lettering/font.js'
import { decodingCost, drawPrints, gridOf } from '../../src/preview/references.js'
import { settingFor } from '../../src/preview/scenery/scene.js'
import { referenceFiles, render } from './support/job.js'
import { claimingPng, plainPicture } from './support/pictures.js'

const AREA = { left: 10, top: 20, width: 800, height: 400 }
const PLAIN = { width: 2_000, height: 1_000, depth: 'uchar', isProgressive: false } as const

const magenta = (width: number, height: number) => plainPicture('#ff00ff', width, height)

const printsOf = async (references: readonly (Uint8Array | undefined)[], area = AREA) =>
  drawPrints(referenceFiles(references), area, settingFor('x').palette, await loadFont(''))

/** The colour of the middle of each print: 'ff00ff' is the reference, the letters of a placeholder are dark. */
const isShown = async ({ input, width, height }: { input: Buffer; width: number; height: number }) => {
  const middle = sharp(input).extract({ left: width >> 1, top: height >> 1, width: 1, height: 1 })
  const [red = 0, green = 0, blue = 0] = await middle.removeAlpha().raw().toBuffer()
  return red > 250 && green < 5 && blue > 250
}

test.each([
  ['a JPEG', { ...PLAIN, format: 'jpeg' }, 2_000_000],
  ['a progressive JPEG', { ...PLAIN, format: 'jpeg', isProgressive: true }, 2_000_000],
  ['a PNG', { ...PLAIN, format: 'png' }, 2_000_000],
  ['an interlaced PNG', { ...PLAIN, format: 'png', isProgressive: true }, 6_000_000],
  ['an interlaced 16-bit PNG', { ...PLAIN, format: 'png', isProgressive: true, depth: 'ushort' }, 12_000_000],
  ['an AVIF', { ...PLAIN, format: 'heif' }, 8_000_000],
  [
    'a picture of more than 100 megapixels',
    { ...PLAIN, format: 'jpeg', width: 100_001 },
    Number.POSITIVE_INFINITY,
  ],
] as const)('decoding %s has its measured cost', (_, header, cost) => {
  expect(decodingCost(header, new Uint8Array(100))).toBe(cost)
})

test('a JPEG costs more with more scans than usual', () => {
  const scans = (count: number) => Buffer.from('ffda00'.repeat(count), 'hex')
  const header = { ...PLAIN, format: 'jpeg', isProgressive: true } as const
  expect(decodingCost(header, scans(12))).toBe(2_000_000)
  expect(decodingCost(header, scans(120))).toBe(20_000_000)
})

test('a reference that is too large or corrupt becomes a placeholder with its reason', async () => {
  const sound = await magenta(90, 60).png().toBuffer()
  const prints = await printsOf([sound, await claimingPng(7_000, 5_000), sound.subarray(0, 60), undefined])
  const unreadable = await printsOf(Array.from({ length: 4 }, () => undefined))
  expect(await Promise.all(prints.map(isShown))).toEqual([true, false, false, false])
  const isUnreadable = prints.map(({ input }, at) => input.equals(unreadable[at]?.input ?? Buffer.alloc(0)))
  expect(isUnreadable).toEqual([false, false, true, true])
})

test('references are left out when their total cost is too large, and smaller ones after them are shown', async () => {
  const sound = await magenta(90, 60).png().toBuffer()
  // 116 million each, of 700 million. The first six are decoded, but their data is missing.
  const large = await claimingPng(4_400, 4_400)
  const prints = await printsOf([...Array.from({ length: 8 }, () => large), sound])
  const unreadable = await printsOf(Array.from({ length: 9 }, () => undefined))
  const isUnreadable = prints.map(({ input }, at) => input.equals(unreadable[at]?.input ?? Buffer.alloc(0)))
  expect(isUnreadable).toEqual([true, true, true, true, true, true, false, false, false])
  expect(await Promise.all(prints.map(isShown))).toEqual([...Array(8).fill(false), true])
})

test.each([
  ['a turned photograph', () => magenta(600, 400).jpeg().withMetadata({ orientation: 6 }), 400 / 600],
  ['16 bits', () => magenta(600, 400).toColourspace('rgb16').png({ progressive: true }), 1.5],
  ['a strip, cropped to four to one', () => magenta(6_000, 4).png(), 4],
  ['one pixel', () => magenta(1, 1).webp({ lossless: true }), 1],
])('a reference with %s keeps its ratio', async (_, make, ratio) => {
  const [print] = await printsOf([await make().toBuffer()])
  if (print === undefined) throw new Error('no print')
  expect(await sharp(print.input).metadata()).toMatchObject({ width: print.width, height: print.height })
  const border = Math.min(AREA.width, AREA.height) * 0.04
  expect((print.width - border) / (print.height - border)).toBeCloseTo(ratio, 1)
  expect(await isShown(print)).toBe(true)
})

test.each([1, 2, 3, 5, 9, 14])(
  '%i reference images are inside their area and do not overlap',
  async (count) => {
    const sizes = [
      [30, 30],
      [32, 18],
      [20, 30],
      [50, 1],
      [1, 50],
    ] as const
    const files = await Promise.all(sizes.map(([width, height]) => magenta(width, height).png().toBuffer()))
    for (const area of [AREA, { ...AREA, height: 1_000 }]) {
      const prints = await printsOf(
        Array.from({ length: count }, (_, index) => files[index % files.length]),
        area,
      )
      expect(prints).toHaveLength(count)
      for (const [index, one] of prints.entries()) {
        expect([one.left, one.top, one.width, one.height].every((each) => each % 2 === 0)).toBe(true)
        expect(one.left).toBeGreaterThanOrEqual(area.left)
        expect(one.left + one.width).toBeLessThanOrEqual(area.left + area.width)
        expect(one.top).toBeGreaterThanOrEqual(area.top)
        expect(one.top + one.height).toBeLessThanOrEqual(area.top + area.height)
        for (const other of prints.slice(index + 1)) {
          const isBeside = one.left + one.width <= other.left || other.left + other.width <= one.left
          expect(isBeside || one.top + one.height <= other.top || other.top + other.height <= one.top).toBe(
            true,
          )
        }
      }
    }
  },
)

test('references are laid out in the grid whose cells have the longest shorter side', () => {
  expect(gridOf({ width: 300, height: 100 }, 3)).toEqual({ columns: 3, across: 100, down: 100 })
  expect(gridOf({ width: 100, height: 300 }, 3)).toEqual({ columns: 1, across: 100, down: 100 })
})

test('a preview as a reference is shown without its caption', async () => {
  const input = { prompt: 'a fox', aspect_ratio: '1:1', quality: 'basic' }
  const [print] = await printsOf([(await render('image', input)).bytes])
  // A caption of one line takes a twelfth of the height.
  const ratio = (print?.width ?? 0) / (print?.height ?? 1)
  expect(ratio).toBeGreaterThan(1.05)
  expect(ratio).toBeLessThan(1.15)
})

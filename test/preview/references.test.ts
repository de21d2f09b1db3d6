import sharp from 'sharp'
import { expect, test } from 'vitest'
import { decodingCost, openReferences } from '../../src/preview/references.js'
import { referenceFiles } from './support/job.js'
import { claimingPng, plainPicture } from './support/pictures.js'

const ROOM = { width: 300, height: 200 }
const PLAIN = { width: 2_000, height: 1_000, depth: 'uchar', isProgressive: false } as const

const magenta = (width: number, height: number) => plainPicture('#ff00ff', width, height)

const fillsOf = async (references: readonly (Uint8Array | undefined)[]) =>
  (await openReferences(referenceFiles(references), ROOM)).map(({ fill }) =>
    typeof fill === 'string' ? fill : 'ok',
  )

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

test('a reference that is too large has another label than a corrupt one', async () => {
  const sound = await magenta(90, 60).png().toBuffer()
  expect(
    await fillsOf([
      sound,
      await claimingPng(7_000, 5_000),
      await claimingPng(20_000, 20_000),
      undefined,
      sound.subarray(0, 60),
    ]),
  ).toEqual(['ok', 'is too large', 'is too large', 'could not be read', 'could not be read'])
})

test('references are left out when their total cost is too large, and smaller ones after them are shown', async () => {
  const sound = await magenta(90, 60).png().toBuffer()
  const large = await claimingPng(4_400, 4_400)
  // 116 million each, of 700 million.
  expect(await fillsOf([...Array.from({ length: 8 }, () => large), sound])).toEqual([
    ...Array.from({ length: 6 }, () => 'could not be read'),
    ...Array.from({ length: 2 }, () => 'is too large'),
    'ok',
  ])
})

test.each([
  ['a turned photograph', () => magenta(600, 400).jpeg().withMetadata({ orientation: 6 }), 400 / 600],
  ['16 bits', () => magenta(600, 400).toColourspace('rgb16').png({ progressive: true }), 1.5],
  ['a strip', () => magenta(6_000, 4).png(), 1_500],
  ['one pixel', () => magenta(1, 1).webp({ lossless: true }), 1],
])('a reference with %s keeps its ratio and fills any size', async (_, make, ratio) => {
  const [reference] = await openReferences(referenceFiles([await make().toBuffer()]), ROOM)
  expect(reference?.ratio).toBeCloseTo(ratio)
  if (typeof reference?.fill !== 'function') throw new Error(reference?.fill)
  const bytes = await reference.fill(301, 77)
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 301, height: 77, channels: 3 })
  const { channels } = await sharp(bytes).stats()
  for (const [index, wanted] of [255, 0, 255].entries())
    expect(Math.abs((channels[index]?.mean ?? 128) - wanted)).toBeLessThan(3)
})

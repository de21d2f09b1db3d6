/** The codes that draw a picture in a terminal. */
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { halfBlocks, iterm2Codes, kittyCodes, type Pixels } from '../../src/preview/picture-codes.js'

const ESC = '\u001b'

const noisyPng = () =>
  sharp({
    create: {
      width: 60,
      height: 40,
      channels: 3,
      background: 'teal',
      noise: { type: 'gaussian', sigma: 30, mean: 128 },
    },
  })
    .png()
    .toBuffer()

describe('the kitty protocol', () => {
  it('sends the PNG in chunks of 4096 characters, and requests no reply', async () => {
    const png = await noisyPng()
    const codes = kittyCodes(png)
    const chunks = [...codes.matchAll(/\u001b_G([^;]*);([^\u001b]*)\u001b\\/g)]
    expect(chunks.map(([, keys]) => keys)).toEqual([
      'a=T,f=100,q=2,m=1',
      ...Array.from({ length: chunks.length - 2 }, () => 'm=1'),
      'm=0',
    ])
    expect(chunks.slice(0, -1).every(([, , text]) => text?.length === 4_096)).toBe(true)
    expect(Buffer.from(chunks.map(([, , text]) => text).join(''), 'base64').equals(png)).toBe(true)
    expect(codes).toBe(`${chunks.map(([whole]) => whole).join('')}\n`)
  })
})

it('the iTerm2 protocol sends the PNG in its own size', () => {
  expect(iterm2Codes(Buffer.from('png'))).toBe(`${ESC}]1337;File=inline=1;size=3:cG5n\u0007\n`)
})

const [RED, BLUE, CLEAR] = [
  [255, 0, 0, 255],
  [0, 0, 255, 255],
  [9, 9, 9, 0],
] as const

const pixelsOf = (...rows: readonly (readonly (readonly number[])[])[]): Pixels => ({
  width: rows[0]?.length ?? 0,
  height: rows.length,
  data: Uint8Array.from(rows.flat(2)),
})

describe('half blocks', () => {
  it('show two pixels each, and write codes only where a colour changes', () => {
    expect(halfBlocks(pixelsOf([RED, RED, BLUE], [BLUE, BLUE, BLUE]), true)).toBe(
      `${ESC}[38;2;255;0;0;48;2;0;0;255m▀▀${ESC}[38;2;0;0;255;48;2;0;0;255m▀${ESC}[0m\n`,
    )
  })

  it('keep the background of the terminal where the picture is transparent or ends', () => {
    const picture = pixelsOf([RED, CLEAR, CLEAR], [CLEAR, RED, CLEAR], [RED, RED, RED])
    expect(halfBlocks(picture, false)).toBe(
      `${ESC}[38;5;196;49m▀▄${ESC}[39;49m ${ESC}[0m\n${ESC}[38;5;196;49m▀▀▀${ESC}[0m\n`,
    )
  })

  it.each([
    [[0, 0, 0], 16],
    [[255, 255, 255], 231],
    [[255, 135, 0], 208],
    [[95, 175, 255], 75],
  ])('use for %j the number %i of 256 colours', (parts, colour) => {
    expect(halfBlocks(pixelsOf([[...parts, 255]]), false)).toContain(`38;5;${colour};49m`)
  })
})

import sharp from 'sharp'
import { expect, test } from 'vitest'
import { ROLES, roleCalled } from '../../src/preview/cast/cast-list.js'
import { EXTRAS, figureOf, iconBody, iconOfEmoji, repaint } from '../../src/preview/cast/figure.js'
import { FIGURES, figuresAtBuild } from '../../src/preview/cast/figures.mjs'
import { type Colour, colour, hex, mix, parseHex, TINTS } from '../../src/preview/colour.js'

const headOf = (icon: string, coat: Colour) => figureOf({ icon, stance: 'head' }, undefined, coat)

test('every role has a figure and is found by its own name', () => {
  for (const { icon } of ROLES) {
    expect(iconBody(icon), icon).toMatch(/^<\w/)
    expect(roleCalled(icon)?.role.icon, icon).toBe(icon)
  }
  expect(new Set(ROLES.map(({ icon }) => icon)).size).toBe(ROLES.length)
})

test('a figure contains only shapes: no script, no link and no file', () => {
  for (const [name, [, body] = ['', '']] of Object.entries(FIGURES.icons))
    expect(body, name).not.toMatch(/<(script|image|foreignObject|style|a)\b|href="(?!#)|url\((?!#)| on\w+=/i)
  expect(FIGURES.notice).toContain('MIT')
})

test('an emoji has a figure for every skin tone', () => {
  expect(['🦊', '❤️', '👍🏿', '👩🏽‍🚀', '🏃‍♀️'].map(iconOfEmoji)).toEqual([
    'fox',
    'red-heart',
    'thumbs-up',
    'astronaut',
    'person-running',
  ])
  expect(iconOfEmoji('x')).toBeUndefined()
})

test('a head gets a body: an animal in its fur, a person in a coat of the given colour', () => {
  expect(headOf('fox', colour(0.5, 0.1, 20)).drawing).toContain('#ff822d')
  expect(headOf('woman', parseHex('#123456')).drawing).toContain('#123456')
})

test('repainting changes the main colour and leaves the eyes', () => {
  const blue = repaint(iconBody('fox') ?? '', { hue: 255, strength: 1.2 })
  expect(blue).not.toContain('#ff822d')
  expect(blue).toContain('#212121')
  expect(repaint('x', undefined)).toBe('x')
})

test('colours go to hex and back', () => {
  for (const text of ['#ff822d', '#000000', '#ffffff', '#123456', '#7f7f7f'])
    expect(hex(parseHex(text))).toBe(text)
  expect(hex(parseHex('#fff'))).toBe('#ffffff')
  expect(hex(mix(parseHex('#000000'), parseHex('#ffffff'), 1))).toBe('#ffffff')
})

test('the build contains the selected figures and not the package', () => {
  const { load } = figuresAtBuild()
  const { code } = (load as { handler(): { code: string } }).handler()
  expect(JSON.parse(code.replace('export const FIGURES = ', ''))).toEqual(FIGURES)
  expect(code.length).toBeLessThan(2_500_000)
  for (const name of Object.keys(EXTRAS)) expect(FIGURES.icons[name]).toBeUndefined()
})

test('every head touches its body', async () => {
  for (const { icon } of ROLES.filter(({ stance }) => stance === 'head')) {
    const { width, height, drawing } = headOf(icon, parseHex('#c0392b'))
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="${height * 10}" viewBox="0 0 ${width} ${height}">${drawing}</svg>`
    const { data, info } = await sharp(Buffer.from(svg)).raw().toBuffer({ resolveWithObject: true })
    // The rows in which nothing at all is drawn near the middle, from the eyes down to the chest.
    const gaps = Array.from({ length: 260 }, (_, at) => 100 + at).filter((row) =>
      [150, 155, 160, 165].every((column) => data[(row * info.width + column) * info.channels + 3] === 0),
    )
    expect(gaps, icon).toEqual([])
  }
})

test('a white figure is white, and its eyes stay dark', () => {
  for (const icon of ['horse', 'cat', 'house', 'running-shoe', 'automobile', 'rabbit']) {
    const white = repaint(iconBody(icon) ?? '', TINTS.get('white'))
    const isGrey = (text: string) => {
      const { lightness, chroma } = parseHex(text)
      return chroma < 0.03 && lightness > 0.5
    }
    const shades = (white.match(/#[0-9a-f]{6}\b/g) ?? []).filter(isGrey)
    expect(Math.max(...shades.map((text) => parseHex(text).lightness)), icon).toBeGreaterThan(0.94)
    expect(Math.min(...shades.map((text) => parseHex(text).lightness)), icon).toBeGreaterThan(0.75)
  }
  expect(repaint(iconBody('cat') ?? '', TINTS.get('white'))).toContain('#212121')
})

// The figures: Fluent Emoji by Microsoft (MIT), in the flat style, selected by figures.mjs. Rejected: Game Icons (CC BY
// 3.0; one colour, many styles), Noto (25 MB; shaded, too much small detail), and OpenMoji and Twemoji (their licences,
// CC BY-SA and CC BY, would apply to every drawn picture).
import { type Colour, colour, hex, mix, parseHex, type Tint } from '../colour.js'
import type { Role } from './cast-list.js'
import { FIGURES } from './figures.mjs'

/** Width and height of the box of every icon. */
export const ICON_BOX = 32

const bodies = new Map<string, string>()
const byCharacters = new Map<string, string>()

/** Returns the SVG elements of an icon in a box of 32 x 32. Undefined for an unknown name. */
export const iconBody = (name: string): string | undefined => bodies.get(name)

/** Returns the icon of an emoji, without its skin tone, and in most cases without its gender. */
export function iconOfEmoji(emoji: string): string | undefined {
  const plain = plainEmoji(emoji)
  const [first = ''] = plain.split('\u200d')
  return (
    byCharacters.get(plain) ?? byCharacters.get(plain.replace(/^[👩👨]/u, '🧑')) ?? byCharacters.get(first)
  )
}

function plainEmoji(emoji: string): string {
  return emoji.replace(/[\ufe0e\ufe0f]|[\u{1f3fb}-\u{1f3ff}]|\u200d[\u2640\u2642]/gu, '')
}

/** Figures that are missing in the icon set, in the same style and box of 32 x 32, with the foot at y = 30. */
export const EXTRAS: Readonly<Record<string, string>> = {
  'hot-air-balloon':
    '<path fill="#f8312f" d="M16 1.5C8.8 1.5 4.5 6.6 4.5 12c0 5.5 5 9.4 8.6 12.3h5.8C22.5 21.4 27.5 17.5 27.5 12 27.5 6.6 ' +
    '23.2 1.5 16 1.5"/><path fill="#ffb02e" d="M16 1.5c-3.9 0-6.2 5-6.2 10.5 0 5 2.6 9.2 4.5 12.3h3.4c1.9-3.1 ' +
    '4.5-7.3 4.5-12.3C22.2 6.5 19.9 1.5 16 1.5"/><path fill="#fff1d8" d="M16 1.5c-1.6 0-2.6 5-2.6 10.5 0 4.8 1.1 9.2 ' +
    '1.9 12.3h1.4c.8-3.1 1.9-7.5 1.9-12.3 0-5.5-1-10.5-2.6-10.5"/><path fill="none" stroke="#6d4534" stroke-width=".5" ' +
    'd="m13.2 24.3.6 2.5m5-2.5-.6 2.5"/><path fill="#a56953" d="M13.3 26.6h5.4l-.5 3.4h-4.4z"/><path ' +
    'fill="#6d4534" d="M13.1 26.2h5.8v1h-5.8z"/>',
  lighthouse:
    '<path fill="#636363" d="M7 30q2-3 9-3t9 3z"/><path fill="#f4f4f4" d="M13 9.5h6l1.8 18.5h-9.6z"/><path ' +
    'fill="#f8312f" d="m12.7 13 6.6 0 .4 4h-7.4zm-.8 8h8.2l.4 4h-9z"/><path fill="#433b6b" d="M12 8.6h8v1.4h-8z"/>' +
    '<path fill="#ffb02e" d="M13.4 5h5.2v3.6h-5.2z"/><path fill="#fff3b0" d="M14.8 5h2.4v3.6h-2.4z"/><path ' +
    'fill="#f8312f" d="M12.6 5 16 1.8 19.4 5z"/><path fill="#fff3b0" fill-opacity=".35" d="M19 6.2 31.5 3v7.4L19 ' +
    '7.8z"/><path fill="#433b6b" d="M15 25.5h2V28h-2z"/>',
  windmill:
    '<path fill="#f4f4f4" d="M12.6 13h6.8L21.5 30h-11z"/><path fill="#d3d3d3" d="M16 13h3.4L21.5 30H16z"/><path ' +
    'fill="#a56953" d="M12 13.4 16 9l4 4.4z"/><path fill="#6d4534" d="M14.7 25h2.6v5h-2.6zM15 17h2v2.4h-2z"/><g ' +
    'fill="#fff1d8" stroke="#6d4534" stroke-width=".5"><path d="M16.2 11.6 23 3.4l1.9 1.5-7.3 7.9z"/><path d="M16.2 ' +
    '12.4 24.4 19l-1.5 1.9-7.9-7.3z"/><path d="M15.6 12.4 9 20.6 7 19.1l7.5-7.9z"/><path d="M15.8 11.6 7.6 5l1.5-1.9 ' +
    '7.9 7.3z"/></g><circle cx="16" cy="12" r="1.3" fill="#6d4534"/>',
  heron:
    '<path d="M16.6 19.5 15.8 30M19.4 19.5 19.9 30M13.6 30h3M17.7 30h3" fill="none" stroke="#7b6a4f" stroke-width=".8"/>' +
    '<path fill="#8fa3b5" d="M11 14.5C14 11.5 21 12 29.5 20 24 22.5 13.5 22.5 11 14.5"/><path fill="#5f7488" d="M14.5 ' +
    '15C18 13.5 22.5 15.5 29.5 20 22 21 16 20 14.5 15"/><path fill="none" stroke="#b9c6d1" stroke-width="2.2" d="M13 ' +
    '17C9.5 15 14.2 11.5 11.4 8.3 10.3 7 9.7 6.2 9.4 5.2"/><ellipse cx="8.8" cy="4.6" rx="2.1" ry="1.5" fill="#f4f4f4"/>' +
    '<path fill="#212121" d="M7.6 3.5C10.5 2.8 13 4 15 6.6 12.5 5.5 10.2 5 8.4 4.4"/><path fill="#ffb02e" d="M7.2 4 .8 ' +
    '5.6 7.2 5.7z"/><circle cx="7.9" cy="4.7" r=".4" fill="#212121"/>',
  'paper-boat':
    '<path fill="#d3d3d3" d="m16 6 6.5 13h-13z"/><path fill="#fff" d="M16 6v13H9.5z"/><path fill="#f4f4f4" d="M2 16.5 9 ' +
    '28h14l7-11.5-8.5 3.5h-11z"/><path fill="#d3d3d3" d="M30 16.5 23 28h-7v-6l5.5-2z"/>',
}

for (const [name, body] of Object.entries(EXTRAS)) bodies.set(name, body)
for (const [name, [codes, body] = ['', '']] of Object.entries(FIGURES.icons)) {
  bodies.set(name, body)
  const points = codes.split('-').map((code) => Number.parseInt(code, 16) || 0)
  const plain = plainEmoji(String.fromCodePoint(...points))
  if (!byCharacters.has(plain)) byCharacters.set(plain, name)
}

/** The colours of a drawing. */
export const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
const NEAR = 55
const ALIKE = 32
const GREY = 0.035

/**
 * Recolours a figure ("a blue fox"). Changes only the main hue and similar hues; eyes, leaves and wheels keep their
 * colours.
 */
export function repaint(body: string, tint: Tint | undefined): string {
  if (tint === undefined) return body
  const main = mainHue(body)
  // A figure that is already close to the colour is not changed: "a red fox" stays orange.
  if (main !== undefined && tint.lightness === undefined && Math.abs(turn(tint.hue - main)) < ALIKE)
    return body
  const isMain = ({ lightness, chroma, hue }: Colour) => {
    if (main === undefined) return lightness > 0.35
    // White and black also change the greys, so that a white shoe has no grey sole, but not eyes, tyres and teeth.
    if (chroma <= GREY) return tint.strength < 0.2 && lightness > 0.4 && lightness < 0.93
    return Math.abs(turn(hue - main)) < NEAR
  }
  const mains = (body.match(FILL) ?? []).map(parseHex).filter(isMain)
  const lightest = Math.max(...mains.map(({ lightness }) => lightness))
  return body.replace(FILL, (text) => {
    const shade = parseHex(text)
    if (!isMain(shade)) return text
    const chroma =
      tint.strength < 0.2 ? 0.012 : Math.max(shade.chroma * 0.9, 0.06) * Math.min(1.2, tint.strength)
    // The lightest part gets the lightness of the colour, so that white is white. Other parts are slightly darker.
    const lightness =
      tint.lightness === undefined ? shade.lightness : tint.lightness - (lightest - shade.lightness) * 0.3
    return hex(colour(lightness, chroma, tint.hue + (main === undefined ? 0 : turn(shade.hue - main) * 0.4)))
  })
}

/** Returns the hue of the largest part. Undefined for a grey figure. */
function mainHue(body: string): number | undefined {
  const weights = new Map<number, number>()
  for (const part of body.split('<')) {
    const [fill] = part.match(FILL) ?? []
    if (fill === undefined) continue
    const shade = parseHex(fill)
    // Earlier fills have more weight, because they are at the bottom and usually the body.
    const weight = shade.chroma > GREY ? shade.chroma / (1 + weights.size * 0.5) : 0
    if (weight > 0) weights.set(shade.hue, (weights.get(shade.hue) ?? 0) + weight)
  }
  const [first] = [...weights].sort(([, one], [, other]) => other - one)
  return first?.[0]
}

const turn = (degrees: number): number => ((degrees + 540) % 360) - 180

/** A drawing of `width` x `height`, with the foot at the bottom edge. */
export interface Figure {
  readonly width: number
  readonly height: number
  readonly drawing: string
}

/** Coat, belly and legs of animals that are only a head in the icon set. */
const FURS = new Map(
  `fox #ff822d #ffdea7 #5a2d1c, wolf #9b9b9b #e6e6e6 #636363, bear #a56953 #d6a78c #6d4534, lion #ffb02e #ffdea7 #e39d89,
  polar-bear #f4f4f4 #ffffff #d3d3d3, panda #f4f4f4 #ffffff #433b6b, koala #9b9b9b #d3d3d3 #7e7e7e,
  raccoon #9b9b9b #d3d3d3 #4a4a4a, hamster #f3ad61 #fff1d8 #d3883e, frog #00d26a #fcd53f #00a653,
  unicorn #f3eef8 #ffffff #cdc4d6, dragon-face #00d26a #fcd53f #00a653, robot #d3d3d3 #3b3f58 #9b9b9b`
    .split(',')
    .map((row) => row.trim().split(' '))
    .map(([icon = '', ...fur]) => [icon, fur] as const),
)
const TAILLESS = /bear|panda|koala|hamster|frog|robot/

/**
 * Returns the figure of an actor. A third of the animals and all plain people of the icon set are only heads, and get a
 * body: an animal in its fur, a person with a coat.
 */
export function figureOf({ icon, stance }: Role, tint: Tint | undefined, coat: Colour): Figure {
  const head = iconBody(icon) ?? ''
  const fur = FURS.get(icon)
  if (stance !== 'head') return { width: ICON_BOX, height: ICON_BOX, drawing: repaint(head, tint) }
  if (fur === undefined) return person(head, coat, /woman|girl/.test(icon))
  return { width: 32, height: 53, drawing: repaint(seated(head, fur, !TAILLESS.test(icon)), tint) }
}

/** Draws a sitting animal from the front. */
function seated(head: string, fur: readonly string[], hasTail: boolean): string {
  const [coat = '', belly = '', legs = ''] = fur
  const shade = hex(mix(parseHex(coat), colour(0.25, 0.05, 40), 0.22))
  const tail =
    `<path d="M20 50C31 53 39 44 36.5 33C34 25 27.5 30 30.5 35.5C32.5 40 27 44 20 43Z" fill="${coat}"/>` +
    `<path d="M36.5 33C34 25 27.5 30 30.5 35.5C32.2 36 34.6 35.2 36.5 33Z" fill="${belly}"/>`
  const limb = (side: number, top: number, fill: string) => {
    const [inner, outer] = [16 - side * 0.6, 16 - side * 7.4]
    return `<path d="M${inner} ${top}V51.5a1.8 1.8 0 0 1 ${-side * 1.8} 1.5
      H${outer + side}L${outer} 51L${outer + side * 2} ${top}Z" fill="${fill}"/>`
  }
  const haunches = [8.6, 23.4].map((x) => `<ellipse cx="${x}" cy="46.5" rx="6" ry="6.2" fill="${shade}"/>`)
  const limbs = [1, -1].map((side) => limb(side, 36, shade) + limb(side, 46.8, legs))
  const body =
    `<path d="M16 22C24 22 27 40 25 52H7C5 40 8 22 16 22Z" fill="${coat}"/>` +
    `<path d="M16 25C20.5 25 21.5 36 19.5 44H12.5C10.5 36 11.5 25 16 25Z" fill="${belly}"/>`
  return `${hasTail ? tail : ''}${haunches.join('')}${body}${limbs.join('')}${head}`
}

/** Draws a person in a long coat. */
function person(head: string, coat: Colour, hasSkirt: boolean): Figure {
  const [main, dark] = [hex(coat), hex(mix(coat, colour(0.2, 0.04, 280), 0.38))]
  const hem = hasSkirt
    ? 'C21 25 22.5 29 23 33L28.5 60H3.5L9 33C9.5 29 11 25'
    : 'C22 25 24 29 24 33L25.5 57H6.5L8 33C8 29 10 25'
  const drawing =
    '<path d="M10.4 55H15V68H8.6C8.6 66.4 9.6 65.6 10.6 65.4ZM21.6 55H17V68H23.4C23.4 66.4 22.4 65.6 21.4 65.4Z"' +
    ` fill="#3b2f4a"/><path d="M16 25${hem} 16 25Z" fill="${main}"/>` +
    '<path d="M9.4 29L5.2 46.5A2 2 0 0 0 9 47.6L12 36ZM22.6 29L26.8 46.5A2 2 0 0 1 23 47.6L20 36Z"' +
    ` fill="${dark}"/><path d="M16 34V57" stroke="${dark}" stroke-width=".7"/>` +
    `<g transform="translate(4 4.4) scale(.75)">${head}</g>` +
    `<path d="M10.2 24.4C13 26.6 19 26.6 21.8 24.4L22.4 28C18.5 30.4 13.5 30.4 9.6 28Z" fill="${dark}"/>`
  return { width: 32, height: 68, drawing }
}

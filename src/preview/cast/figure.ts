// The figures: Fluent Emoji by Microsoft (MIT), in the flat style, selected by figures.mjs. Rejected: Game Icons (CC BY
// 3.0; one colour, many styles), Noto (25 MB; shaded, too much small detail), and OpenMoji and Twemoji (their licences,
// CC BY-SA and CC BY, would apply to every drawn picture).
import { type Colour, colour, hex, mix, parseHex, type Tint } from '../colour.js'
import { FIGURES } from './figures.mjs'

/** Width and height of the box of every icon. */
export const ICON_BOX = 32

const { icons } = FIGURES

/** Returns the SVG elements of an icon in a box of 32 x 32. Undefined for an unknown name. */
export function iconBody(name: string): string | undefined {
  if (Object.hasOwn(EXTRAS, name)) return EXTRAS[name]
  return Object.hasOwn(icons, name) ? icons[name]?.[1] : undefined
}

const byCharacters = new Map<string, string>()
for (const [name, [codes] = ['']] of Object.entries(icons)) {
  const plain = plainEmoji(
    String.fromCodePoint(...codes.split('-').map((code) => Number.parseInt(code, 16) || 0)),
  )
  if (!byCharacters.has(plain)) byCharacters.set(plain, name)
}

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
    '<path fill="#f8312f" d="M16 1.5C8.8 1.5 4.5 6.6 4.5 12c0 5.5 5 9.4 8.6 12.3h5.8' +
    'C22.5 21.4 27.5 17.5 27.5 12 27.5 6.6 23.2 1.5 16 1.5"/>' +
    '<path fill="#ffb02e" d="M16 1.500c-3.9 0-6.2 5-6.2 10.5 0 5 2.6 9.2 4.5 12.300h3.400' +
    'c1.9-3.1 4.5-7.3 4.5-12.300C22.2 6.5 19.9 1.5 16 1.5"/>' +
    '<path fill="#fff1d8" d="M16 1.500c-1.6 0-2.6 5-2.6 10.5 0 4.8 1.1 9.2 1.9 12.300h1.400' +
    'c.8-3.1 1.9-7.5 1.9-12.3 0-5.5-1-10.5-2.6-10.5"/>' +
    '<path fill="none" stroke="#6d4534" stroke-width=".5" d="m13.2 24.3.6 2.500m5-2.5-.6 2.5"/><path' +
    ' fill="#a56953" d="M13.3 26.600h5.400l-.5 3.400h-4.400z"/><path fill="#6d4534"' +
    ' d="M13.1 26.200h5.800v1h-5.800z"/>',
  lighthouse:
    '<path fill="#636363" d="M7 30q2-3 9-3t9 3z"/><path fill="#f4f4f4" d="M13 9.500h6l1.8 18.500h-9.600z"/>' +
    '<path fill="#f8312f" d="m12.7 13 6.6 0 .4 4h-7.400zm-.8 8h8.200l.4 4h-9z"/><path fill="#433b6b"' +
    ' d="M12 8.600h8v1.400h-8z"/>' +
    '<path fill="#ffb02e" d="M13.4 5h5.200v3.600h-5.200z"/><path fill="#fff3b0"' +
    ' d="M14.8 5h2.400v3.600h-2.400z"/><path fill="#f8312f" d="M12.6 5 16 1.8 19.4 5z"/>' +
    '<path fill="#fff3b0" fill-opacity=".35" d="M19 6.2 31.5 3v7.400L19 7.800z"/><path fill="#433b6b"' +
    ' d="M15 25.500h2V28h-2z"/>',
  windmill:
    '<path fill="#f4f4f4" d="M12.6 13h6.800L21.5 30h-11z"/><path fill="#d3d3d3" d="M16 13h3.400' +
    'L21.5 30H16z"/><path fill="#a56953" d="M12 13.4 16 9l4 4.400z"/>' +
    '<path fill="#6d4534" d="M14.7 25h2.600v5h-2.600zM15 17h2v2.400h-2z"/><g fill="#fff1d8"' +
    ' stroke="#6d4534" stroke-width=".5">' +
    '<path d="M16.2 11.6 23 3.400l1.9 1.5-7.3 7.900z"/><path d="M16.2 12.4 24.4 19l-1.5 1.9-7.9-7.300z"/>' +
    '<path d="M15.6 12.4 9 20.6 7 19.100l7.5-7.900z"/><path d="M15.8 11.6 7.6 5l1.5-1.9 7.9 7.300z"/>' +
    '</g><circle cx="16" cy="12" r="1.3" fill="#6d4534"/>',
  'paper-boat':
    '<path fill="#d3d3d3" d="m16 6 6.5 13h-13z"/><path fill="#fff" d="M16 6v13H9.500z"/><path' +
    ' fill="#f4f4f4" d="M2 16.5 9 28h14l7-11.5-8.5 3.500h-11z"/>' +
    '<path fill="#d3d3d3" d="M30 16.5 23 28h-7v-6l5.5-2z"/>',
}

const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
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

interface Fur {
  readonly coat: string
  readonly belly: string
  readonly legs: string
  readonly tail: 'brush' | 'tuft' | 'stub' | 'ringed' | 'none'
}

const FURS: Readonly<Record<string, Fur>> = {
  fox: { coat: '#ff822d', belly: '#ffdea7', legs: '#5a2d1c', tail: 'brush' },
  wolf: { coat: '#9b9b9b', belly: '#e6e6e6', legs: '#636363', tail: 'brush' },
  bear: { coat: '#a56953', belly: '#d6a78c', legs: '#6d4534', tail: 'stub' },
  'polar-bear': { coat: '#f4f4f4', belly: '#ffffff', legs: '#d3d3d3', tail: 'stub' },
  lion: { coat: '#ffb02e', belly: '#ffdea7', legs: '#e39d89', tail: 'tuft' },
  panda: { coat: '#f4f4f4', belly: '#ffffff', legs: '#433b6b', tail: 'stub' },
  koala: { coat: '#9b9b9b', belly: '#d3d3d3', legs: '#7e7e7e', tail: 'none' },
  raccoon: { coat: '#9b9b9b', belly: '#d3d3d3', legs: '#4a4a4a', tail: 'ringed' },
  hamster: { coat: '#f3ad61', belly: '#fff1d8', legs: '#d3883e', tail: 'none' },
  frog: { coat: '#00d26a', belly: '#fcd53f', legs: '#00a653', tail: 'none' },
  unicorn: { coat: '#f3eef8', belly: '#ffffff', legs: '#cdc4d6', tail: 'brush' },
  'dragon-face': { coat: '#00d26a', belly: '#fcd53f', legs: '#00a653', tail: 'tuft' },
  robot: { coat: '#d3d3d3', belly: '#3b3f58', legs: '#9b9b9b', tail: 'none' },
}

/**
 * Draws a body under a figure that is only a head, from the front and in the colours of the head. A third of the
 * animals and all plain people of the icon set are only heads. `coat` is the colour of a person's coat, `tint` the
 * colour that the prompt gives an animal.
 */
export function figureWithBody(icon: string, coat: Colour, tint: Tint | undefined): Figure {
  const head = iconBody(icon) ?? ''
  const fur = FURS[icon]
  if (fur === undefined) return person(head, coat, /woman|girl/.test(icon))
  const figure = seated(head, fur)
  return { ...figure, drawing: repaint(figure.drawing, tint) }
}

/** Draws a sitting animal from the front. */
function seated(head: string, { coat, belly, legs, tail }: Fur): Figure {
  const shade = hex(mix(parseHex(coat), colour(0.25, 0.05, 40), 0.22))
  const ellipse = (x: number, y: number, across: number, down: number, fill: string) =>
    `<ellipse cx="${x}" cy="${y}" rx="${across}" ry="${down}" fill="${fill}"/>`
  const drawing =
    tailOf(tail, coat, belly, legs) +
    ellipse(8.6, 46.5, 6, 6.2, shade) +
    ellipse(23.4, 46.5, 6, 6.2, shade) +
    `<path d="M16 22C24 22 27 40 25 52H7C5 40 8 22 16 22Z" fill="${coat}"/>` +
    `<path d="M16 25C20.5 25 21.5 36 19.5 44H12.5C10.5 36 11.5 25 16 25Z" fill="${belly}"/>` +
    `<path d="M10.5 36H15.4V51.5A1.8 1.8 0 0 1 13.6 53H10A1.8 1.8 0 0 1 8.6 51.2Z" fill="${shade}"/>` +
    `<path d="M21.5 36H16.6V51.5A1.8 1.8 0 0 0 18.4 53H22A1.8 1.8 0 0 0 23.4 51.2Z" fill="${shade}"/>` +
    `<path d="M8.9 46.8H15.4V51.5A1.8 1.8 0 0 1 13.6 53H10A1.8 1.8 0 0 1 8.6 51.2Z" fill="${legs}"/>` +
    `<path d="M23.1 46.8H16.6V51.5A1.8 1.8 0 0 0 18.4 53H22A1.8 1.8 0 0 0 23.4 51.2Z" fill="${legs}"/>` +
    head
  return { width: 32, height: 53, drawing }
}

function tailOf(kind: Fur['tail'], coat: string, belly: string, legs: string): string {
  const brush = 'M20 50C31 53 39 44 36.5 33C34 25 27.5 30 30.5 35.5C32.5 40 27 44 20 43Z'
  const tip = 'M36.5 33C34 25 27.5 30 30.5 35.5C32.2 36 34.6 35.2 36.5 33Z'
  if (kind === 'none') return ''
  if (kind === 'stub') return `<circle cx="25" cy="44" r="3" fill="${coat}"/>`
  if (kind === 'tuft')
    return (
      `<path d="M21 49C31 52 33 42 33.5 36" fill="none" stroke="${coat}" stroke-width="2.4"/>` +
      `<circle cx="33.7" cy="34.5" r="3.2" fill="${legs}"/>`
    )
  const rings =
    kind === 'ringed'
      ? `<path d="M27 48.6L29.4 41.4M32.4 44.6L30.8 38M36.6 37L31.2 34.6" stroke="${legs}"` +
        ' stroke-width="2.2"/>'
      : ''
  return (
    `<path d="${brush}" fill="${coat}"/><path d="${tip}"` +
    ` fill="${kind === 'ringed' ? legs : belly}"/>${rings}`
  )
}

/** Draws a person in a long coat. */
function person(head: string, coat: Colour, skirt: boolean): Figure {
  const main = hex(coat)
  const dark = hex(mix(coat, colour(0.2, 0.04, 280), 0.38))
  const hem = skirt
    ? 'M16 25C21 25 22.5 29 23 33L28.5 60H3.5L9 33C9.5 29 11 25 16 25Z'
    : 'M16 25C22 25 24 29 24 33L25.5 57H6.5L8 33C8 29 10 25 16 25Z'
  const drawing =
    '<path d="M10.4 55H15V68H8.6C8.6 66.4 9.6 65.6 10.6 65.4Z' +
    'M21.6 55H17V68H23.4C23.4 66.4 22.4 65.6 21.4 65.4Z" fill="#3b2f4a"/>' +
    `<path d="${hem}" fill="${main}"/>` +
    '<path d="M9.4 29L5.2 46.5A2 2 0 0 0 9 47.6L12 36ZM22.6 29L26.8 46.5A2 2 0 0 1 23 47.6L20 36Z"' +
    ` fill="${dark}"/>` +
    `<path d="M16 34V${skirt ? 60 : 57}" stroke="${dark}" stroke-width=".7"/>` +
    `<g transform="translate(4 4.4) scale(.75)">${head}</g>` +
    `<path d="M10.2 24.4C13 26.6 19 26.6 21.8 24.4L22.4 28C18.5 30.4 13.5 30.4 9.6 28Z" fill="${dark}"/>`
  return { width: 32, height: 68, drawing }
}

// Bodies for figures that are only a head, as a third of the animals and all plain people of the set are. Each is drawn
// under the head, from the front, in the head's colours.
import { type Colour, colour, hex, mix, parseHex } from '../colour.js'
import type { Tint } from '../colour-words.js'
import { iconBody } from './icons.js'
import { repaint } from './repaint.js'

/** A drawing of `width` x `height`, with its foot at the bottom edge. */
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

/** `coat` is the colour of a person's coat, `tint` the colour that the prompt gives an animal. */
export function figureWithBody(icon: string, coat: Colour, tint: Tint | undefined): Figure {
  const head = iconBody(icon) ?? ''
  const fur = FURS[icon]
  if (fur === undefined) return person(head, coat, /woman|girl/.test(icon))
  const figure = seated(head, fur)
  return { ...figure, drawing: repaint(figure.drawing, tint) }
}

/** An animal that sits, seen from the front. */
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
      ? `<path d="M27 48.6L29.4 41.4M32.4 44.6L30.8 38M36.6 37L31.2 34.6" stroke="${legs}" stroke-width="2.2"/>`
      : ''
  return `<path d="${brush}" fill="${coat}"/><path d="${tip}" fill="${kind === 'ringed' ? legs : belly}"/>${rings}`
}

/** A person in a long coat. */
function person(head: string, coat: Colour, skirt: boolean): Figure {
  const main = hex(coat)
  const dark = hex(mix(coat, colour(0.2, 0.04, 280), 0.38))
  const hem = skirt
    ? 'M16 25C21 25 22.5 29 23 33L28.5 60H3.5L9 33C9.5 29 11 25 16 25Z'
    : 'M16 25C22 25 24 29 24 33L25.5 57H6.5L8 33C8 29 10 25 16 25Z'
  const drawing =
    `<path d="M10.4 55H15V68H8.6C8.6 66.4 9.6 65.6 10.6 65.4ZM21.6 55H17V68H23.4C23.4 66.4 22.4 65.6 21.4 65.4Z" fill="#3b2f4a"/>` +
    `<path d="${hem}" fill="${main}"/>` +
    `<path d="M9.4 29L5.2 46.5A2 2 0 0 0 9 47.6L12 36ZM22.6 29L26.8 46.5A2 2 0 0 1 23 47.6L20 36Z" fill="${dark}"/>` +
    `<path d="M16 34V${skirt ? 60 : 57}" stroke="${dark}" stroke-width=".7"/>` +
    `<g transform="translate(4 4.4) scale(.75)">${head}</g>` +
    `<path d="M10.2 24.4C13 26.6 19 26.6 21.8 24.4L22.4 28C18.5 30.4 13.5 30.4 9.6 28Z" fill="${dark}"/>`
  return { width: 32, height: 68, drawing }
}

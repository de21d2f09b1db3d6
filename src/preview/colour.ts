// Colours in OKLCH. Equal steps in OKLCH look equally large, so one rule that makes distant things paler works for
// every hue. Conversion by Björn Ottosson: https://bottosson.github.io/posts/oklab/

/** `lightness` 0 to 1, `chroma` 0 (grey) to about 0.3, `hue` in degrees. */
export interface Colour {
  readonly lightness: number
  readonly chroma: number
  readonly hue: number
}

export function colour(lightness: number, chroma: number, hue: number): Colour {
  return { lightness: clamp(lightness), chroma: Math.max(0, chroma), hue: ((hue % 360) + 360) % 360 }
}

/** Returns a colour by its axes in OKLab: from green to red, and from blue to yellow. */
const fromAxes = (lightness: number, a: number, b: number): Colour =>
  colour(lightness, Math.hypot(a, b), (Math.atan2(b, a) * 180) / Math.PI)

function axesOf({ chroma, hue }: Colour): readonly [number, number] {
  const turn = (hue * Math.PI) / 180
  return [chroma * Math.cos(turn), chroma * Math.sin(turn)]
}

/** Formats a colour as `#rrggbb`, with each channel clipped to sRGB. */
export function hex(shade: Colour): string {
  const { lightness } = shade
  const [a, b] = axesOf(shade)
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const channels = [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ]
  const bytes = channels.map((linear) => Math.round(gamma(clamp(linear)) * 255))
  return `#${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Parses `#rrggbb` or `#rgb`. */
export function parseHex(text: string): Colour {
  const digits = text.length === 4 ? text.slice(1).replace(/./g, '$&$&') : text.slice(1)
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) =>
    linear(Number.parseInt(digits.slice(at, at + 2), 16) / 255),
  )
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const middle = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  return fromAxes(
    0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
    1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
    0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
  )
}

/**
 * Mixes two colours on a straight line through OKLab: `amount` 0 returns the first colour, 1 the second. Interpolating
 * the hue was rejected, because a turquoise sea in golden light became green.
 */
export function mix(one: Colour, other: Colour, amount: number): Colour {
  const [[a, b], [otherA, otherB]] = [axesOf(one), axesOf(other)]
  const lightness = one.lightness + (other.lightness - one.lightness) * amount
  return fromAxes(lightness, a + (otherA - a) * amount, b + (otherB - b) * amount)
}

const gamma = (linear: number): number =>
  linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055

const linear = (channel: number): number =>
  channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4

const clamp = (value: number): number => Math.min(1, Math.max(0, value))

/** A named colour: its hue in OKLCH and its strength, which is 0 for white, grey and black. */
export interface Tint {
  readonly hue: number
  readonly strength: number
  /** Only for colours that are always light or always dark, such as navy. */
  readonly lightness?: number
}

/** Each entry: name, hue, strength and, for colours that are always light or dark, lightness. */
const NAMED = `
  red 27 1.2, crimson 20 1.2, scarlet 30 1.2, rust 42 1, orange 55 1.2, amber 70 1.1, copper 50 0.8,
  brown 58 0.6 0.44, sepia 75 0.5, gold 85 1.1, golden 82 1.1, yellow 98 1.2, beige 85 0.4 0.86, cream 90 0.4 0.92,
  lime 125 1.2, olive 112 0.7, green 145 1.1, emerald 160 1.2, mint 165 0.7, jade 162 0.9, teal 190 1,
  turquoise 195 1, cyan 205 1.1, azure 235 1.1, blue 255 1.2, navy 262 1 0.36, indigo 278 1.1, violet 295 1.1,
  purple 305 1.1, lavender 300 0.6, lilac 310 0.6, magenta 330 1.3, fuchsia 335 1.3, pink 355 1, rose 8 0.9,
  coral 35 1, white 240 0.15 0.95, silver 250 0.12 0.8, grey 260 0.1 0.6, gray 260 0.1 0.6, black 270 0.1 0.22
`

export const TINTS: ReadonlyMap<string, Tint> = new Map(
  NAMED.split(',').map((row) => {
    const [name = '', hue, strength, lightness] = row.trim().split(' ')
    const tint = { hue: Number(hue), strength: Number(strength) }
    return [name, lightness === undefined ? tint : { ...tint, lightness: Number(lightness) }]
  }),
)

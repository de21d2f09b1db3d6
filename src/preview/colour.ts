// Colours in OKLCH, because equal steps look equal there: one rule for "further away is paler" serves every hue.
// The conversion is Björn Ottosson's (https://bottosson.github.io/posts/oklab/).

/** `lightness` 0 to 1, `chroma` 0 (grey) to about 0.3, `hue` in degrees. */
export interface Colour {
  readonly lightness: number
  readonly chroma: number
  readonly hue: number
}

export function colour(lightness: number, chroma: number, hue: number): Colour {
  return { lightness: clamp(lightness), chroma: Math.max(0, chroma), hue: ((hue % 360) + 360) % 360 }
}

/** The colour as `#rrggbb`, clipped to sRGB per channel. */
export function hex({ lightness, chroma, hue }: Colour): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180)
  const b = chroma * Math.sin((hue * Math.PI) / 180)
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const channels = [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ]
  return `#${channels.map((linear) => byte(gamma(clamp(linear)))).join('')}`
}

/** The colour of `#rrggbb` or `#rgb`. */
export function parseHex(text: string): Colour {
  const digits = text.length === 4 ? text.slice(1).replace(/./g, '$&$&') : text.slice(1)
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) =>
    linear(Number.parseInt(digits.slice(at, at + 2), 16) / 255),
  )
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const middle = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  const a = 1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short
  const b = 0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short
  const lightness = 0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short
  return colour(lightness, Math.hypot(a, b), (Math.atan2(b, a) * 180) / Math.PI)
}

/**
 * `amount` 0 is the first colour, 1 the second, on a straight line through OKLab. Interpolating the hue was rejected: a
 * turquoise sea in golden light became green.
 */
export function mix(one: Colour, other: Colour, amount: number): Colour {
  const [from, to] = [one, other].map(({ chroma, hue }) => {
    const turn = (hue * Math.PI) / 180
    return { a: chroma * Math.cos(turn), b: chroma * Math.sin(turn) }
  }) as [{ a: number; b: number }, { a: number; b: number }]
  const a = from.a + (to.a - from.a) * amount
  const b = from.b + (to.b - from.b) * amount
  const lightness = one.lightness + (other.lightness - one.lightness) * amount
  return colour(lightness, Math.hypot(a, b), (Math.atan2(b, a) * 180) / Math.PI)
}

function gamma(linear: number): number {
  return linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055
}

function linear(channel: number): number {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
}

function byte(value: number): string {
  return Math.round(value * 255)
    .toString(16)
    .padStart(2, '0')
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value))
}

// Colour words.

/** A colour word's place on the OKLCH wheel and how much colour it carries: 0 for white, grey and black. */
export interface Tint {
  readonly hue: number
  readonly strength: number
  /** Where a colour is by its nature light or dark. */
  readonly lightness?: number
}

/** A name, its hue, its strength and, for colours that are light or dark by nature, their lightness. */
const NAMED = `
  red 27 1.2, crimson 20 1.2, scarlet 30 1.2, rust 42 1, orange 55 1.2, amber 70 1.1, copper 50 0.8,
  brown 58 0.6 0.44, sepia 75 0.5, gold 85 1.1, golden 82 1.1, yellow 98 1.2, beige 85 0.4 0.86, cream 90 0.4 0.92,
  lime 125 1.2, olive 112 0.7, green 145 1.1, emerald 160 1.2, mint 165 0.7, jade 162 0.9, teal 190 1,
  turquoise 195 1, cyan 205 1.1, azure 235 1.1, blue 255 1.2, navy 262 1 0.36, indigo 278 1.1, violet 295 1.1,
  purple 305 1.1, lavender 300 0.6, lilac 310 0.6, magenta 330 1.3, fuchsia 335 1.3, pink 355 1, rose 8 0.9,
  coral 35 1, white 240 0.15 0.95, silver 250 0.12 0.8, grey 260 0.1 0.6, gray 260 0.1 0.6, black 270 0.1 0.22,
  monochrome 260 0
`

export const TINTS: Readonly<Record<string, Tint>> = Object.fromEntries(
  NAMED.split(',').map((row) => {
    const [name = '', hue, strength, lightness] = row.trim().split(' ')
    const tint = { hue: Number(hue), strength: Number(strength) }
    return [name, lightness === undefined ? tint : { ...tint, lightness: Number(lightness) }]
  }),
)

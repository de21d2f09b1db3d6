// Colour words.

/** A colour word's place on the OKLCH wheel and how much colour it carries: 0 for white, grey and black. */
export interface Tint {
  readonly hue: number
  readonly strength: number
  /** Where a colour is by its nature light or dark. */
  readonly lightness?: number
}

export const TINTS: Readonly<Record<string, Tint>> = {
  red: { hue: 27, strength: 1.2 },
  crimson: { hue: 20, strength: 1.2 },
  scarlet: { hue: 30, strength: 1.2 },
  rust: { hue: 42, strength: 1 },
  orange: { hue: 55, strength: 1.2 },
  amber: { hue: 70, strength: 1.1 },
  copper: { hue: 50, strength: 0.8 },
  brown: { hue: 58, strength: 0.6, lightness: 0.44 },
  sepia: { hue: 75, strength: 0.5 },
  gold: { hue: 85, strength: 1.1 },
  golden: { hue: 82, strength: 1.1 },
  yellow: { hue: 98, strength: 1.2 },
  beige: { hue: 85, strength: 0.4, lightness: 0.86 },
  cream: { hue: 90, strength: 0.4, lightness: 0.92 },
  lime: { hue: 125, strength: 1.2 },
  olive: { hue: 112, strength: 0.7 },
  green: { hue: 145, strength: 1.1 },
  emerald: { hue: 160, strength: 1.2 },
  mint: { hue: 165, strength: 0.7 },
  jade: { hue: 162, strength: 0.9 },
  teal: { hue: 190, strength: 1 },
  turquoise: { hue: 195, strength: 1 },
  cyan: { hue: 205, strength: 1.1 },
  azure: { hue: 235, strength: 1.1 },
  blue: { hue: 255, strength: 1.2 },
  navy: { hue: 262, strength: 1, lightness: 0.36 },
  indigo: { hue: 278, strength: 1.1 },
  violet: { hue: 295, strength: 1.1 },
  purple: { hue: 305, strength: 1.1 },
  lavender: { hue: 300, strength: 0.6 },
  lilac: { hue: 310, strength: 0.6 },
  magenta: { hue: 330, strength: 1.3 },
  fuchsia: { hue: 335, strength: 1.3 },
  pink: { hue: 355, strength: 1 },
  rose: { hue: 8, strength: 0.9 },
  coral: { hue: 35, strength: 1 },
  white: { hue: 240, strength: 0.15, lightness: 0.95 },
  silver: { hue: 250, strength: 0.12, lightness: 0.8 },
  grey: { hue: 260, strength: 0.1, lightness: 0.6 },
  gray: { hue: 260, strength: 0.1, lightness: 0.6 },
  black: { hue: 270, strength: 0.1, lightness: 0.22 },
  monochrome: { hue: 260, strength: 0 },
}

import type { Place } from './words.js'

/**
 * `face`: the face of a person; `head`: of an animal; `bust`: a person down to the chest; `stand`: a whole figure on the
 * ground; `fly`: in the air; `float`: in the water; `landmark`: large, behind the others; `thing`: on a table.
 */
export type Stance = 'face' | 'head' | 'bust' | 'stand' | 'fly' | 'float' | 'landmark' | 'thing'

export interface Figure {
  readonly stance: Stance
  /** Height in units, in a middle shot. */
  readonly size: number
  readonly isPerson: boolean
  /** SVG elements in a box of 32 x 32. */
  readonly body: string
  /** Its place if the prompt names none. */
  readonly home?: Place
}

/** A figure by its name. */
export interface Named {
  readonly name: string
  readonly count: number
}

type Names = Readonly<Record<string, string | undefined>>

export const EMOJI: {
  readonly notice: string
  readonly figures: Readonly<Record<string, Figure | undefined>>
  /** Words for exactly a figure, and how many a word shows: a plural is three. */
  readonly words: Readonly<Record<string, Named>>
  /** Words to names of figures that are related. */
  readonly near: Names
  /** Persons with a verb to names: `woman-walks`. */
  readonly actions: Names
  /** Emoji without variation selectors to names, of which most are figures. */
  readonly characters: Names
}
export function emojiAtBuild(): { name: string; load: object }

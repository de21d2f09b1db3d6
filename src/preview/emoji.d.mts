import type { Place } from './words.js'

/**
 * `face`: the face of a person; `head`: of an animal; `bust`: a person down to the chest; `stand`: a whole figure on the
 * ground; `fly`: in the air; `float`: in the water; `landmark`: large, behind the others; `thing`: on a table.
 */
export type Stance = 'face' | 'head' | 'bust' | 'stand' | 'fly' | 'float' | 'landmark' | 'thing'

export interface Figure {
  readonly stance: Stance
  /** SVG elements in a box of 32 x 32. */
  readonly body: string
  /** Its place if the prompt names none. */
  readonly home?: Place
}

type Names = Readonly<Record<string, string | undefined>>

export const EMOJI: {
  readonly notice: string
  readonly figures: Readonly<Record<string, Figure | undefined>>
  /** Words to names of figures: the same thing in `synonyms`, a related one in `near`. */
  readonly synonyms: Names
  readonly near: Names
  /** Persons with a verb to names: `woman-walks`. */
  readonly actions: Names
  /** Emoji without variation selectors to names. */
  readonly characters: Names
}
export function emojiAtBuild(): { name: string; load: object }

// What the prompt says that can be drawn: colours, an hour, a place, a subject. Only words of the vocabulary count.
import {
  type Hour,
  PLACE_WORDS,
  type Place,
  SUBJECT_WORDS,
  type Subject,
  TIMES,
  TINTS,
  type Tint,
  WEATHER,
} from './vocabulary.js'

export interface Reading {
  /** The picture's colours, in the order in which they were named. */
  readonly tints: readonly Tint[]
  /** The colour that was said of the subject. */
  readonly subjectTint: Tint | undefined
  readonly hour: Hour | undefined
  readonly place: Place | undefined
  readonly subject: Subject | undefined
}

/**
 * Reads the prompt's words in order; the first word that names an hour, a place or a subject decides it. A time of day
 * outranks weather, so that "a snowy forest at dusk" is dusk.
 */
export function readPrompt(prompt: string): Reading {
  const words: readonly string[] = prompt.toLowerCase().match(/\p{L}+/gu) ?? []
  const place = firstOf(words, PLACE_WORDS)?.key
  const subject = firstOf(words, SUBJECT_WORDS)
  const before = subject === undefined ? -1 : words.indexOf(subject.word)
  const tints: Tint[] = []
  let subjectTint: Tint | undefined
  for (const [index, word] of words.entries()) {
    const tint = Object.hasOwn(TINTS, word) ? TINTS[word] : undefined
    if (tint === undefined) continue
    // "a red fox", "a red paper boat": the colour is the subject's. "red dunes, a fox": it is the picture's.
    if (index < before && before - index <= 2) subjectTint ??= tint
    else tints.push(tint)
  }
  return {
    tints,
    subjectTint,
    hour:
      firstOf(words, TIMES)?.key ?? firstOf(words, WEATHER)?.key ?? (place === 'space' ? 'night' : undefined),
    place,
    subject: subject?.key,
  }
}

function firstOf<Key extends string>(
  words: readonly string[],
  table: Readonly<Record<Key, string>>,
): { readonly key: Key; readonly word: string } | undefined {
  const rows = (Object.entries(table) as [Key, string][]).map(([key, list]) => ({
    key,
    list: list.split(' '),
  }))
  for (const word of words) {
    const row = rows.find(({ list }) => list.includes(word))
    if (row !== undefined) return { key: row.key, word }
  }
  return undefined
}

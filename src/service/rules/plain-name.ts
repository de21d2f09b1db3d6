/** The names of accounts and keys. Pure. */

export const MAX_NAME_LENGTH = 100

/** Emoji are joined by an invisible character: that of 👩‍💻 is between a woman and a laptop. Elsewhere it is refused. */
const JOINER_IN_EMOJI =
  /(?<=\p{Extended_Pictographic}(\p{Emoji_Modifier}|\ufe0f)?)\u200d(?=\p{Extended_Pictographic})/gu

/** Control and formatting characters, incomplete, private and unassigned ones, and the separators of lines and paragraphs. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u

/** Two names that look the same would be taken for each other, and one that reverses the text for something else. */
export const isPlainName = (name: string): boolean =>
  name !== '' &&
  name.length <= MAX_NAME_LENGTH &&
  name.trim() === name &&
  !INVISIBLE.test(name.replace(JOINER_IN_EMOJI, ''))

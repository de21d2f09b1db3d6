/** Words of a command line, for a POSIX shell. */
import { printable } from './text.js'

/** A word as a POSIX shell reads it back. */
export const quoteWord = (word: string): string => {
  if (/^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-')) return word
  return printable(word) === word ? `'${word.replaceAll("'", `'\\''`)}'` : ansiQuoted(word)
}

/** For bash, zsh and ksh: the bytes of a word with characters that are not printed. */
const ansiQuoted = (word: string): string =>
  `$'${[...new TextEncoder().encode(word)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`

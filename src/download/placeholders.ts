/** The placeholders that a path given to `-o` may contain. */
import { usageError } from '../errors.js'
import { nearest } from '../protocol/nearest.js'
import { printable } from '../protocol/text.js'

export const PLACEHOLDERS = ['id', 'index', 'kind', 'name', 'ext'] as const
export type Placeholder = (typeof PLACEHOLDERS)[number]

const KNOWN = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`, 'g')

/**
 * A word in braces is meant as a placeholder, so a mistyped one is an error before the run is paid for; `{ id }` and
 * `{index:03}` too. Other braces (`{}`, `{1}`, `{a,b}`) are legal in file names and stay.
 */
const LOOKS_LIKE_ONE = /\{\s*([A-Za-z][\w:.-]*)\s*\}/g

/** Throws `usage`, with the known placeholders. */
export function checkPlaceholders(template: string): void {
  for (const [whole, word = ''] of template.matchAll(LOOKS_LIKE_ONE)) {
    if (PLACEHOLDERS.some((known) => whole === `{${known}}`)) continue
    const meant = nearest(word.replace(/:.*/, ''), PLACEHOLDERS)
    throw usageError(
      `Unknown placeholder ${printable(whole)} in the output path.`,
      `Use ${PLACEHOLDERS.map((known) => `{${known}}`).join(' ')}.${meant ? ` Did you mean {${meant}}?` : ''}`,
    )
  }
}

export const holds = (template: string, placeholder: Placeholder): boolean =>
  template.includes(`{${placeholder}}`)

/** Replaces the placeholders that have a value. */
export const fill = (template: string, values: Readonly<Partial<Record<Placeholder, string>>>): string =>
  template.replace(KNOWN, (whole, word: Placeholder) => values[word] ?? whole)

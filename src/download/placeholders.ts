/** The words in braces that a path given to `-o` may hold. */
import { usageError } from '../errors.js'
import { nearest } from '../protocol/nearest.js'
import { printable } from '../protocol/text.js'

export const PLACEHOLDERS = ['id', 'index', 'kind', 'name', 'ext'] as const
export type Placeholder = (typeof PLACEHOLDERS)[number]

const KNOWN = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`, 'g')

/**
 * A word in braces means a placeholder, so a mistyped one must not become part of a file's name after the run was
 * paid for; `{ id }` and `{index:03}` are such mistakes too. Everything else in braces (`{}`, `{1}`, `{a,b}`) is text:
 * it is a legal name, and means something to other programs.
 */
const LOOKS_LIKE_ONE = /\{\s*([A-Za-z][\w:.-]*)\s*\}/g

/** Throws a usage error that names the known ones. */
export function checkPlaceholders(template: string): void {
  for (const [whole, word = ''] of template.matchAll(LOOKS_LIKE_ONE)) {
    if (PLACEHOLDERS.some((known) => whole === `{${known}}`)) continue
    const meant = nearest(word.replace(/:.*/, ''), PLACEHOLDERS)
    throw usageError(
      `the output path holds an unknown placeholder: ${printable(whole)}`,
      `Known are ${PLACEHOLDERS.map((known) => `{${known}}`).join(' ')}.${meant ? ` Did you mean {${meant}}?` : ''}`,
    )
  }
}

export const holds = (template: string, placeholder: Placeholder): boolean =>
  template.includes(`{${placeholder}}`)

/** Fills in what `values` has, and leaves the rest as it is. */
export const fill = (template: string, values: Readonly<Partial<Record<Placeholder, string>>>): string =>
  template.replace(KNOWN, (whole, word: Placeholder) => values[word] ?? whole)

/** Names of output files: the placeholders in a path, numbers, and text from outside that becomes a part of a name. Pure. */
import { usageError } from '../errors.js'
import { cutToBytes, nearest, printable } from './text.js'

const PLACEHOLDERS = ['id', 'index', 'kind', 'name', 'ext'] as const
type OutputPlaceholder = (typeof PLACEHOLDERS)[number]

const KNOWN = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`, 'g')

/**
 * Text in braces that looks like a placeholder. An unknown one, such as `{ id }` or `{index:03}`, is an error before
 * the run is paid for. Other braces (`{}`, `{1}`, `{a,b}`) are valid in file names and are kept.
 */
const PLACEHOLDER_LIKE = /\{\s*([A-Za-z][\w:.-]*)\s*\}/g

/** Throws `usage` for an unknown placeholder, with the list of known ones. */
export function checkPlaceholders(template: string): void {
  for (const [whole, word = ''] of template.matchAll(PLACEHOLDER_LIKE)) {
    if (PLACEHOLDERS.some((known) => whole === `{${known}}`)) continue
    const suggestion = nearest(word.replace(/:.*/, ''), PLACEHOLDERS)
    throw usageError(
      `Unknown placeholder ${printable(whole)} in the output path.`,
      `Use ${PLACEHOLDERS.map((known) => `{${known}}`).join(' ')}.${suggestion ? ` Did you mean {${suggestion}}?` : ''}`,
    )
  }
}

export const holds = (template: string, placeholder: OutputPlaceholder): boolean =>
  template.includes(`{${placeholder}}`)

/** Replaces the placeholders that have a value. */
export const fill = (
  template: string,
  values: Readonly<Partial<Record<OutputPlaceholder, string>>>,
): string => template.replace(KNOWN, (whole, word: OutputPlaceholder) => values[word] ?? whole)

/** Fills in each part of a path. A part that would become the name of a device of Windows begins with `_`. */
export const fillParts = (path: string, fillPart: (part: string) => string): string =>
  path.replace(/[^/]+/g, (part) => {
    const filled = fillPart(part)
    return filled === part ? part : unreserved(filled)
  })

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(\.|$)/i

/** Whether Windows reserves the name for a device. */
export const isDeviceName = (name: string): boolean => DEVICE.test(name)

const LAST_COMPONENT = { '\\': /[^\\/]*$/, '/': /[^/]*$/ } as const

/** Adds a number to a file name: `fox.png`, `fox-2.png`. `separator`: of folders; on Windows, `/` separates them too. */
export const numbered = (path: string, number: number, separator: '/' | '\\' = '/'): string =>
  path.replace(LAST_COMPONENT[separator], (file) => {
    const dot = file.lastIndexOf('.')
    return dot > 0 ? `${file.slice(0, dot)}-${number}${file.slice(dot)}` : `${file}-${number}`
  })

// Text from outside (an id, a name) must not make a file name leave the folder, hide the file, look like a flag, change
// the reading direction, or match a device.

const MAX_PART_LENGTH = 100

/**
 * Unsafe characters: control, format (reading direction, zero width) and unassigned characters, the characters that
 * Windows rejects, and braces.
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*{}]/gu

/**
 * Makes an id safe: any character except `[A-Za-z0-9._-]` becomes `_`, leading dots and dashes are removed, and the
 * length is 1 to 100 characters.
 */
export const safeName = (id: string): string =>
  id
    .replace(/[^A-Za-z0-9._-]/gu, '_')
    .replace(/^[.-]+/, '')
    .slice(0, MAX_PART_LENGTH) || '_'

/** Makes a user's text safe: letters of any script and spaces stay; the length is 1 to 100 bytes. */
export const safePart = (text: string): string =>
  cutToBytes(
    text
      .normalize('NFC')
      .replace(UNSAFE, '_')
      .replace(/^[\s.-]+/u, ''),
    MAX_PART_LENGTH,
  ).replace(/[\s.]+$/u, '') || '_'

/**
 * Puts `_` before a name that Windows reserves for a device. Done on every system, because users copy files between
 * systems.
 */
export const unreserved = (name: string): string => (isDeviceName(name) ? `_${name}` : name)

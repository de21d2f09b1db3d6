/** What a server says is shown to people: control characters (C0, DEL, C1) could drive their terminal. */

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

/** One printable line: line ends and tabs become a space, every other control character goes. */
export const printable = (text: string): string => text.replace(/[\t\n\r]+/g, ' ').replace(CONTROL, '')

/** JSON whose text holds no control character: C0 is escaped by JSON itself, DEL and C1 are escaped here. */
export const printableJson = (value: unknown, indent?: number): string =>
  escapeControls(jsonOf(value, indent))

/** The control characters that JSON itself lets stand. */
export const escapeControls = (json: string): string =>
  json.replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Deeper than that nobody nests on purpose. */
const MAX_LEVELS = 200

/** What was parsed may be too deep to be written: V8 reads JSON of any depth, and writes some 4,000 levels. */
function jsonOf(value: unknown, indent: number | undefined): string {
  try {
    return JSON.stringify(value, null, indent) ?? 'null'
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return JSON.stringify(withinLevels(value, MAX_LEVELS), null, indent)
  }
}

/** The same without what lies deeper, which becomes null. */
function withinLevels(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return null
  if (Array.isArray(value)) return value.map((each) => withinLevels(each, levels - 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, withinLevels(each, levels - 1)]),
  )
}

/** The start of a long text, for a message. */
export const shortened = (text: string, most = 300): string =>
  text.length <= most ? text : `${text.slice(0, most - 1)}…`

/** The input of a run as words of `rushes run`. */
import type { Kind } from './models.js'
import { flagOf, negatedFlagOf, parametersOf, valueOfText } from './parameters.js'
import { isObject } from './parse.js'
import { quoteWord } from './shell-word.js'
import { printable } from './text.js'

export interface RunWords {
  /** Quoted for a POSIX shell: the prompt, then flags with their values. */
  readonly words: readonly string[]
  /** What no flag can say: for `--input`. */
  readonly rest: Readonly<Record<string, unknown>>
}

export function runWords(kind: Kind, input: Readonly<Record<string, unknown>>): RunWords {
  const words: string[] = []
  const rest: Record<string, unknown> = {}
  const schemas = parametersOf(kind)
  for (const [name, value] of Object.entries(input)) {
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined
    const text = String(value)
    const fits = schema !== undefined && schema.type !== 'array' && valueOfText(schema, text) === value
    // A control character in a pasted line would be a command of the terminal or the shell.
    if (!fits || printable(text) !== text || text === '' || text === '-') rest[name] = value
    else if (schema.type === 'boolean') words.push(value === true ? flagOf(name) : negatedFlagOf(name))
    else if (name === 'prompt' && !text.startsWith('-')) words.unshift(quoteWord(text))
    else words.push(flagOf(name), quoteWord(text))
  }
  return { words, rest }
}

/** An image that was sent as a data: URL, in the place of its bytes. */
export interface SentImage {
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export const isSentImage = (value: unknown): value is SentImage =>
  isObject(value) &&
  typeof value.sha256 === 'string' &&
  typeof value.bytes === 'number' &&
  typeof value.content_type === 'string'

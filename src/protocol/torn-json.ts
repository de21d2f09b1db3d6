/** Parses incomplete JSON from a connection that broke. */
import { visit } from 'jsonc-parser/lib/esm/main.js'
import { integerOf } from './json.js'

type TornObject = Record<string, unknown>

/**
 * Returns the values that arrived completely, up to the end of the text or the first syntax error. Lists stay empty. A
 * string is complete if its closing quote arrived, a number if another character follows it.
 */
export function parseTornJson(text: string): unknown {
  const root: TornObject = Object.create(null)
  const open = [{ holder: root, name: 'value' }]
  const put = (value: unknown) => {
    const parent = open.at(-1)
    if (parent !== undefined) parent.holder[parent.name] = value
  }
  /** Adds `value` to the result and opens it. The entries of a list go to an object that is dropped. */
  const begin = (value: unknown, holder: TornObject) => {
    put(value)
    open.push({ holder, name: '' })
  }
  const end = () => void open.pop()
  try {
    visit(
      text.replace(/^\uFEFF/, ' '),
      {
        onObjectBegin() {
          const object: TornObject = Object.create(null)
          begin(object, object)
        },
        onArrayBegin: () => begin([], Object.create(null)),
        onObjectEnd: end,
        onArrayEnd: end,
        onObjectProperty(name) {
          const parent = open.at(-1)
          if (parent !== undefined) parent.name = name
        },
        onLiteralValue(value, offset, length) {
          const digits = typeof value === 'number' ? text.slice(offset, offset + length) : ''
          if (typeof value === 'string' || offset + length < text.length) put(integerOf(digits) ?? value)
        },
        onError() {
          throw new Error('the end of the usable text')
        },
      },
      { disallowComments: true },
    )
  } catch {
    // Keep everything before the error. Too many nested levels are an error too.
  }
  return root.value
}

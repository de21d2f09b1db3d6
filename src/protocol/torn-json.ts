/** JSON that broke off, as a connection that ended leaves it. */
import { visit } from 'jsonc-parser/lib/esm/main.js'

type Holder = Record<string, unknown>

/**
 * The values of objects that arrived whole, up to where the text ends or stops being JSON. Lists stay empty. A string is whole
 * when its closing quote arrived, a number when something follows it.
 */
export function parseTornJson(text: string): unknown {
  const root: Holder = Object.create(null)
  const open = [{ holder: root, name: 'value' }]
  const put = (value: unknown) => {
    const at = open.at(-1)
    if (at !== undefined) at.holder[at.name] = value
  }
  /** `value` stands in the result. What belongs to a list is put where nobody looks. */
  const begin = (value: unknown, holder: Holder) => {
    put(value)
    open.push({ holder, name: '' })
  }
  const end = () => void open.pop()
  try {
    visit(
      text.replace(/^\uFEFF/, ' '),
      {
        onObjectBegin() {
          const object: Holder = Object.create(null)
          begin(object, object)
        },
        onArrayBegin: () => begin([], Object.create(null)),
        onObjectEnd: end,
        onArrayEnd: end,
        onObjectProperty(name) {
          const at = open.at(-1)
          if (at !== undefined) at.name = name
        },
        onLiteralValue(value, offset, length) {
          if (typeof value === 'string' || offset + length < text.length) put(value)
        },
        onError() {
          throw new Error('the end of what is usable')
        },
      },
      { disallowComments: true },
    )
  } catch {
    // What came before an error is kept. Too many levels are one, too.
  }
  return root.value
}

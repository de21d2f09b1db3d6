/** JSON that broke off, as a connection that ended leaves it. */
import { visit } from 'jsonc-parser/lib/esm/main.js'

type TornObject = Record<string, unknown>

/**
 * The values of objects that arrived whole, up to where the text ends or stops being JSON. Lists stay empty. A
 * string is whole when its closing quote arrived, a number when something follows it.
 */
export function parseTornJson(text: string): unknown {
  const root: TornObject = Object.create(null)
  const open = [{ holder: root, name: 'value' }]
  const put = (value: unknown) => {
    const parent = open.at(-1)
    if (parent !== undefined) parent.holder[parent.name] = value
  }
  /** Opens `value`, which is part of the result. The entries of a list go to an object that is dropped. */
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
          if (typeof value === 'string' || offset + length < text.length) put(value)
        },
        onError() {
          throw new Error('the end of the usable text')
        },
      },
      { disallowComments: true },
    )
  } catch {
    // What came before an error is kept. Too many levels are one, too.
  }
  return root.value
}

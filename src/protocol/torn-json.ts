/** Parses incomplete JSON from a connection that broke. */
import { readJson } from './json.js'

/** A number or a word is complete if another character follows it. */
const TOKEN =
  /[ \t\r\n]*(?:([{}[\]:,])|("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")|((?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=[ \t\r\n,\]}])))/y

type Expected = 'value' | 'item' | 'first name' | 'name' | 'colon' | 'end'

/** Returns what is expected after a token; undefined for a syntax error. `innermost`: the closing mark of the open value. */
function next(expected: Expected, mark: string, innermost: string | undefined): Expected | undefined {
  if (expected === 'colon') return mark === ':' ? 'value' : undefined
  if (expected === 'end' && mark === ',') return innermost === '}' ? 'name' : 'value'
  if (expected !== 'name' && expected !== 'value' && mark === innermost) return 'end'
  if (expected === 'first name' || expected === 'name') return mark.startsWith('"') ? 'colon' : undefined
  if (expected === 'end') return undefined
  if (mark === '{') return 'first name'
  if (mark === '[') return 'item'
  return /^[}\]:,]/.test(mark) ? undefined : 'end'
}

/**
 * Returns the values that arrived completely, up to the end of the text or the first syntax error. Lists stay empty. A
 * string is complete if its closing quote arrived.
 */
export function parseTornJson(text: string): unknown {
  /** Closing marks of the open values, and of those, the number of lists. */
  const open: string[] = []
  let lists = 0
  /** The tokens outside lists, and how many of them are whole once the open values are closed. */
  const parts: string[] = []
  let whole = 0
  let expected: Expected | undefined = 'value'
  TOKEN.lastIndex = text.startsWith('\uFEFF') ? 1 : 0
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const mark = found[1] ?? found[2] ?? found[3] ?? ''
    const isInList = lists > 0
    expected = next(expected, mark, open.at(-1))
    if (expected === undefined) break
    if (expected === 'first name') open.push('}')
    else if (expected === 'item') {
      open.push(']')
      lists += 1
    } else if (mark === '}' || mark === ']') lists -= open.pop() === ']' ? 1 : 0
    if (!isInList || lists === 0) parts.push(mark)
    if (expected === 'end' || expected === 'first name' || expected === 'item') whole = parts.length
    if (open.length === 0) break
  }
  const list = open.indexOf(']')
  const closing = (list === -1 ? open : open.slice(0, list + 1)).reverse()
  return whole === 0 ? undefined : readJson([...parts.slice(0, whole), ...closing].join(''))
}

/** Parses incomplete JSON from a connection that broke. */
import { readJson } from './json.js'

/** A string, also one that the end of the text cuts, and the marks around values. */
const TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*("|\\?$)|[{}[\],]/g

/**
 * Returns the values that arrived completely, up to the last mark or the last string. Undefined if there is none, and for
 * text that is not JSON. Control characters in strings, which some services do not escape, become spaces.
 */
export function parseTornJson(torn: string): unknown {
  const text = torn.replace(/^\uFEFF/, '').replace(/[\u0000-\u001f]/g, ' ')
  /** Closing marks of the open values. */
  const open: string[] = []
  let endOfMark = 0
  let endOfString = 0
  for (const { 0: token, 1: quote, index } of text.matchAll(TOKEN)) {
    if (quote === '"') endOfString = index + token.length
    else if (quote !== undefined) break
    else {
      endOfMark = token === ',' ? index : index + 1
      if (token === '{') open.push('}')
      else if (token === '[') open.push(']')
      else if (token !== ',') open.pop()
      if (open.length === 0) break
    }
  }
  const closing = open.reverse().join('')
  // The last string may be the name of a field.
  for (const end of endOfString > endOfMark ? [endOfString, endOfMark] : [endOfMark])
    try {
      return readJson(text.slice(0, end) + closing)
    } catch {}
  return undefined
}

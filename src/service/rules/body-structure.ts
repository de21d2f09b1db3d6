/**
 * Bounds the structure of a request body before it is parsed: deep or finely divided JSON costs many times more time
 * and memory than its bytes. One pass over the bytes, which ends at the first bound that is exceeded.
 */
import { Refusal } from './refusal.js'

/** Objects and lists within each other. */
export const MAX_DEPTH = 100
/** Far more than any input needs: the schemas name five parameters, and lists of at most 14. */
export const MAX_VALUES = 10_000

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Throws `Refusal` (invalid_input). Bytes that are not JSON pass, or are refused for their structure. */
export function checkStructure(body: Uint8Array): void {
  let depth = 0
  let values = 1
  let inString = false
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]
    if (inString) {
      if (byte === BACKSLASH) index++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA) values++
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth++
      values++
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
    if (depth > MAX_DEPTH)
      throw new Refusal('invalid_input', `The body is nested more than ${MAX_DEPTH} levels deep.`)
    if (values > MAX_VALUES)
      throw new Refusal('invalid_input', `The body has more than ${MAX_VALUES} values.`)
  }
}

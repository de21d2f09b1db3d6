/** Decodes the payload of data: URLs (RFC 2397). */

/**
 * Decodes Base64 in both alphabets, with or without padding. Returns undefined for other characters, which Node would
 * skip.
 */
export function fromBase64(payload: string): Buffer | undefined {
  const plain = payload.includes('%') ? fromPercent(payload).toString('latin1') : payload
  return fromDigits(plain) ?? fromDigits(plain.replace(/\s+/g, ''))
}

/**
 * Decodes the characters of either alphabet; undefined if another character is among them. Node skips such characters, so
 * the bytes are then too few: counting them is faster than a pattern over 64 MiB.
 */
function fromDigits(text: string): Buffer | undefined {
  const padding = /={0,2}$/.exec(text.slice(-2))?.[0].length ?? 0
  const digits = text.length - padding
  // Node uses only the low byte of a character beyond Latin-1, which may be a valid one.
  if (digits % 4 === 1 || Buffer.byteLength(text) > text.length) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined
}

const PERCENT = 0x25

/** Decodes percent escapes like in URLs: a percent sign without two hexadecimal digits stays. */
export function fromPercent(payload: string): Buffer {
  const bytes = Buffer.from(payload, 'utf8')
  let length = 0
  for (let at = 0; at < bytes.length; at++, length++) {
    const byte = bytes[at] ?? 0
    const [high, low] = byte === PERCENT ? [digitOf(bytes[at + 1]), digitOf(bytes[at + 2])] : []
    const isEscape = high !== undefined && low !== undefined
    bytes[length] = isEscape ? high * 16 + low : byte
    if (isEscape) at += 2
  }
  return bytes.subarray(0, length)
}

function digitOf(byte = 0): number | undefined {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase())
  return digit < 0 ? undefined : digit
}

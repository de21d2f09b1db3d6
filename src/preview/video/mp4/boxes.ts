// ISO base media boxes (ISO/IEC 14496-12): four bytes of length, four letters of name, then the content.

/** A box around the given parts. */
export function box(name: string, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 8)
  return Buffer.concat([numbers(length), Buffer.from(name, 'latin1'), ...parts])
}

/** A box that begins with a version and flags. */
export function fullBox(name: string, flags: number, ...parts: readonly Uint8Array[]): Buffer {
  return box(name, numbers(flags), ...parts)
}

/** 32-bit numbers, as nearly everything in these boxes is. */
export function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}

/** 16-bit numbers. */
export function shorts(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2)
  return bytes
}

/**
 * The content of the box at a path, `moov/trak/mdia`; undefined when it is not there. Only boxes with 32-bit lengths
 * are understood, which is what the encoder writes.
 */
export function findBox(bytes: Uint8Array, path: string): Buffer | undefined {
  let content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  for (const name of path.split('/')) {
    const found = childNamed(content, name)
    if (found === undefined) return undefined
    content = found
  }
  return content
}

function childNamed(content: Buffer, name: string): Buffer | undefined {
  for (let at = 0; at + 8 <= content.length; ) {
    const length = content.readUInt32BE(at)
    if (length < 8 || at + length > content.length) return undefined
    if (content.toString('latin1', at + 4, at + 8) === name) return content.subarray(at + 8, at + length)
    at += length
  }
  return undefined
}

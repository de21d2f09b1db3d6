// A reader of MP4 boxes of the tests' own, so that the writer is not checked by itself.

export interface Box {
  readonly name: string
  readonly offset: number
  readonly content: Buffer
}

/** The boxes side by side in `bytes`, which begin at `base` within the file. Throws when they do not fit. */
export function boxesIn(bytes: Buffer, base = 0): Box[] {
  const boxes: Box[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    if (length < 8 || at + length > bytes.length) throw new Error(`a box of ${length} bytes at ${base + at}`)
    const name = bytes.toString('latin1', at + 4, at + 8)
    boxes.push({ name, offset: base + at, content: bytes.subarray(at + 8, at + length) })
    at += length
  }
  return boxes
}

/** The content of one box by its path, such as `moov/trak/mdia`. */
export function boxAt(bytes: Buffer, path: string): Buffer {
  return path.split('/').reduce((content, name) => {
    const found = boxesIn(content).find((box) => box.name === name)
    if (found === undefined) throw new Error(`no ${name} of ${path}`)
    return found.content
  }, bytes)
}

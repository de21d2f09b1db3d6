import { expect } from 'vitest'

export interface WantedFilm {
  readonly width: number
  readonly height: number
  readonly frames: number
  /** Counted from 1. */
  readonly keyFrames: readonly number[]
}

/** Expects H.264 at 24 frames a second in an MP4 that plays while it is downloaded. */
export function checkFilm(bytes: Buffer, { width, height, frames, keyFrames }: WantedFilm): void {
  expect(boxesIn(bytes).map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
  for (const path of ['moov/mvhd', 'moov/trak/mdia/mdhd']) {
    const header = boxAt(bytes, path)
    expect(header.readUInt32BE(16) / header.readUInt32BE(12)).toBe(frames / 24)
    expect(header.readUInt32BE(4)).toBe(0) // no clock: the same input gives the same bytes
  }

  const table = boxAt(bytes, 'moov/trak/mdia/minf/stbl')
  const [entry] = boxesIn(boxAt(table, 'stsd').subarray(8))
  expect(entry?.name).toBe('avc1')
  expect([entry?.content.readUInt16BE(24), entry?.content.readUInt16BE(26)]).toEqual([width, height])
  // The Baseline profile of H.264: no other sampling than 4:2:0 at 8 bits.
  expect(boxAt(entry?.content.subarray(78) ?? Buffer.alloc(0), 'avcC')[1]).toBe(66)

  // Every frame is where the tables say, and the key frames are those that are listed.
  const sizes = boxAt(table, 'stsz')
  expect(sizes.readUInt32BE(8)).toBe(frames)
  const keys = boxAt(table, 'stss')
  const listed = Array.from({ length: keys.readUInt32BE(4) }, (_, index) => keys.readUInt32BE(8 + index * 4))
  expect(listed).toEqual(keyFrames)
  let at = boxAt(table, 'stco').readUInt32BE(8)
  expect(at).toBe((boxesIn(bytes)[2]?.offset ?? 0) + 8)
  for (let frame = 1; frame <= frames; frame++) {
    const size = sizes.readUInt32BE(8 + frame * 4)
    expect(bytes.readUInt32BE(at)).toBeLessThanOrEqual(size - 4)
    expect((bytes[at + 4] ?? 0) & 0x1f).toBe(keyFrames.includes(frame) ? 5 : 1)
    at += size
  }
  expect(at).toBe(bytes.length)
}

// A reader of MP4 boxes of the tests, so that the writer is not checked by itself.

interface Box {
  readonly name: string
  readonly offset: number
  readonly content: Buffer
}

/** The boxes side by side in `bytes`. Throws when they do not fit. */
function boxesIn(bytes: Buffer): Box[] {
  const boxes: Box[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    if (length < 8 || at + length > bytes.length) throw new Error(`a box of ${length} bytes at ${at}`)
    const name = bytes.toString('latin1', at + 4, at + 8)
    boxes.push({ name, offset: at, content: bytes.subarray(at + 8, at + length) })
    at += length
  }
  return boxes
}

/** The content of one box by its path, such as `moov/trak/mdia`. */
function boxAt(bytes: Buffer, path: string): Buffer {
  return path.split('/').reduce((content, name) => {
    const found = boxesIn(content).find((box) => box.name === name)
    if (found === undefined) throw new Error(`no ${name} of ${path}`)
    return found.content
  }, bytes)
}

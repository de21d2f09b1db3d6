// Rewrites the encoder's MP4 file. `moov` comes first, so that playing can start during the download; it lists the key
// frames (without them players show garbage after a seek), names the matrix of BT.601, which the encoder uses, and has the
// prompt as title and no time of day, so that the same frames give the same bytes. Rejected: mediabunny, which always
// writes the time of day.

/** Returns the film. The encoder got `frames` frames, and made a key frame of every `interval`th, from the first. */
export function fastStart(mp4: Uint8Array, frames: number, interval: number, title: string): Buffer {
  const file = Buffer.from(mp4.buffer, mp4.byteOffset, mp4.length)
  const [type, movie, data] = ['ftyp', 'moov', 'mdat'].map((wanted) =>
    boxesIn(file).find(({ name }) => name === wanted),
  )
  if (!type || !movie || !data) throw new Error('the encoder wrote an incomplete MP4')
  const rewritten = (shift: number) => rewrite(movie.whole, changesOf(frames, interval, shift, title))
  // The first call only measures: the length does not depend on the offsets, which have a fixed width.
  const shift = type.whole.length + rewritten(0).length - data.offset
  return Buffer.concat([type.whole, rewritten(shift), data.whole])
}

type Changes = Readonly<Record<string, (content: Buffer) => readonly Uint8Array[]>>

/** Returns the new contents of the boxes that are changed. */
function changesOf(frames: number, interval: number, shift: number, title: string): Changes {
  const keyFrames = Array.from({ length: Math.ceil(frames / interval) }, (_, at) => at * interval + 1)
  // QuickTime's title: its length in 16 bits, no language, and UTF-8.
  const text = Buffer.from(title)
  const bt601 = Buffer.from('nclx\0\x01\0\x01\0\x06\0')
  const inside = (content: Buffer) => [rewrite(content, changes)]
  const withoutTime = (content: Buffer) => [content.subarray(0, 4), Buffer.alloc(8), content.subarray(12)]
  const changes: Changes = {
    moov: (content) => [...inside(content), box('udta', box('\xa9nam', numbers([text.length << 16]), text))],
    ...{ trak: inside, mdia: inside, minf: inside },
    ...{ mvhd: withoutTime, tkhd: withoutTime, mdhd: withoutTime },
    stbl: (content) => [...inside(content), box('stss', numbers([0, keyFrames.length, ...keyFrames]))],
    stsd: (content) => [content.subarray(0, 8), ...inside(content.subarray(8))],
    avc1: (content) => [content, box('colr', bt601)],
    stco: (content) => {
      const offsets = Array.from(
        { length: content.length / 4 - 2 },
        (_, at) => content.readUInt32BE(8 + 4 * at) + shift,
      )
      return [content.subarray(0, 8), numbers(offsets)]
    },
    stsz(content) {
      const written = content.readUInt32BE(8)
      if (written !== frames) throw new Error(`the encoder wrote ${written} of ${frames} frames`)
      return [content]
    },
  }
  return changes
}

const rewrite = (boxes: Buffer, changes: Changes): Buffer =>
  Buffer.concat(
    boxesIn(boxes).map(({ name, content, whole }) => {
      const change = changes[name]
      return change === undefined ? whole : box(name, ...change(content))
    }),
  )

/** Returns the boxes side by side in `bytes`. */
function boxesIn(bytes: Buffer) {
  const boxes: { name: string; offset: number; content: Buffer; whole: Buffer }[] = []
  for (let offset = 0; offset < bytes.length; ) {
    const whole = bytes.subarray(offset, offset + Math.max(8, bytes.readUInt32BE(offset)))
    boxes.push({ name: whole.toString('latin1', 4, 8), offset, content: whole.subarray(8), whole })
    offset += whole.length
  }
  return boxes
}

/** Returns a box that contains the parts. */
function box(name: string, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 8)
  return Buffer.concat([numbers([length]), Buffer.from(name, 'latin1'), ...parts])
}

/** Returns 32-bit big-endian numbers. */
const numbers = (values: readonly number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer).swap32()

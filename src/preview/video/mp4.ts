// Writes the MP4 file. `moov` comes first, so that playing can start during the download; it lists the key frames,
// declares BT.709 and has no creation time, so that the same frames give the same bytes. Rejected: the encoder's `moov`
// with shifted offsets, for the reasons at `readTrack`, and mediabunny, which always writes the time of day.
import type { Size } from '../render-request.js'

export interface Track {
  /** Content of the `avcC` box. */
  readonly parameters: Buffer
  /** All frames in order, as length-prefixed NAL units. */
  readonly data: Buffer
  /** Size of each frame in bytes. */
  readonly sizes: readonly number[]
  /** Numbers of the frames that can be decoded without other frames, counted from 1. */
  readonly keyFrames: readonly number[]
}

const UNITY = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000] as const
const UNDETERMINED_LANGUAGE = 0x55c4

/** Returns the file. `rate` is in frames per second. */
export function fastStart(track: Track, size: Size, rate: number): Buffer {
  const type = box('ftyp', Buffer.from('isom'), numbers(0x200), Buffer.from('isomiso2avc1mp41'))
  // The first call only measures the length of `moov`. The length does not depend on the offset, which has a fixed
  // width.
  const head = type.length + movie(track, size, rate, 0).length + 8
  return Buffer.concat([type, movie(track, size, rate, head), box('mdat', track.data)])
}

function movie(track: Track, size: Size, rate: number, offset: number): Buffer {
  // The unit of time is 1/1000 of a frame, so that every rate and the length of the film are exact.
  const scale = rate * 1000
  const duration = track.sizes.length * 1000
  const header = fullBox(
    'mvhd',
    0,
    numbers(0, 0, scale, duration, 0x10000),
    shorts(0x100, 0),
    numbers(0, 0),
    numbers(...UNITY),
    numbers(0, 0, 0, 0, 0, 0, 2),
  )
  const trackHeader = fullBox(
    'tkhd',
    3,
    numbers(0, 0, 1, 0, duration, 0, 0, 0, 0),
    numbers(...UNITY),
    numbers(size.width * 0x10000, size.height * 0x10000),
  )
  const media = box(
    'mdia',
    fullBox('mdhd', 0, numbers(0, 0, scale, duration), shorts(UNDETERMINED_LANGUAGE, 0)),
    fullBox('hdlr', 0, numbers(0), Buffer.from('vide'), numbers(0, 0, 0), Buffer.from('rushes preview\0')),
    box(
      'minf',
      fullBox('vmhd', 1, shorts(0, 0, 0, 0)),
      box('dinf', fullBox('dref', 0, numbers(1), fullBox('url ', 1))),
      sampleTable(track, size, offset),
    ),
  )
  return box('moov', header, box('trak', trackHeader, media))
}

function sampleTable({ parameters, sizes, keyFrames }: Track, size: Size, offset: number): Buffer {
  const count = sizes.length
  return box(
    'stbl',
    fullBox('stsd', 0, numbers(1), sampleEntry(parameters, size)),
    fullBox('stts', 0, numbers(1, count, 1000)),
    fullBox('stss', 0, numbers(keyFrames.length, ...keyFrames)),
    fullBox('stsc', 0, numbers(1, 1, count, 1)),
    fullBox('stsz', 0, numbers(0, count, ...sizes)),
    fullBox('stco', 0, numbers(1, offset)),
  )
}

function sampleEntry(parameters: Buffer, size: Size): Buffer {
  const bt709 = 1
  const colour = box('colr', Buffer.from('nclx'), shorts(bt709, bt709, bt709), Buffer.from([0]))
  return box(
    'avc1',
    shorts(0, 0, 0, 1, 0, 0),
    numbers(0, 0, 0),
    shorts(size.width, size.height),
    numbers(0x480000, 0x480000, 0),
    shorts(1),
    Buffer.alloc(32),
    shorts(24, 0xffff),
    box('avcC', parameters),
    colour,
    box('pasp', numbers(1, 1)),
  )
}

/** Returns a box that contains the parts. */
function box(name: string, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 8)
  return Buffer.concat([numbers(length), Buffer.from(name, 'latin1'), ...parts])
}

/** Returns a box that starts with a version and flags. */
function fullBox(name: string, flags: number, ...parts: readonly Uint8Array[]): Buffer {
  return box(name, numbers(flags), ...parts)
}

/** Returns 32-bit big-endian numbers. */
function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}

/** Returns 16-bit big-endian numbers. */
function shorts(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2)
  return bytes
}

/**
 * Returns the content of the box at a path such as `moov/trak/mdia`, or undefined if it is missing. Supports only boxes
 * with 32-bit lengths, which the encoder writes.
 */
export function findBox(bytes: Uint8Array, path: string): Buffer | undefined {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const [name = '', ...rest] = path.split('/')
  for (let at = 0; at + 8 <= content.length; ) {
    const length = content.readUInt32BE(at)
    if (length < 8 || at + length > content.length) return undefined
    const child = content.subarray(at + 8, at + length)
    if (content.toString('latin1', at + 4, at + 8) === name)
      return rest.length === 0 ? child : findBox(child, rest.join('/'))
    at += length
  }
  return undefined
}

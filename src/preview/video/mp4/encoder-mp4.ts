// Reads the parameter sets and the frames from the bundled encoder's MP4. The rest of its `moov` is not usable: it comes
// after the data, lists no key frames (so that players show garbage after a seek), declares no colour space, and contains
// the time of day.
import { findBox } from './boxes.js'

export interface Track {
  /** The content of the `avcC` box. */
  readonly parameters: Buffer
  /** The frames, one after the other, as length-prefixed NAL units. */
  readonly data: Buffer
  /** The bytes of each frame. */
  readonly sizes: readonly number[]
  /** The frames that can be decoded alone, counted from 1. */
  readonly keyFrames: readonly number[]
}

const IDR_SLICE = 5
// The fixed part of `stsd` and of the `avc1` entry within it, before the boxes they hold.
const DESCRIPTION_HEADER = 8
const ENTRY_HEADER = 78

/** Throws when the file is not what h264-mp4-encoder 1.0.12 writes. */
export function readTrack(mp4: Uint8Array): Track {
  const table = findBox(mp4, 'moov/trak/mdia/minf/stbl')
  const data = findBox(mp4, 'mdat')
  const description = table && findBox(table, 'stsd')
  const entry = description && findBox(description.subarray(DESCRIPTION_HEADER), 'avc1')
  const parameters = entry && findBox(entry.subarray(ENTRY_HEADER), 'avcC')
  const sizeTable = table && findBox(table, 'stsz')
  if (data === undefined || parameters === undefined || sizeTable === undefined) {
    throw new Error('the encoder wrote an MP4 without the boxes that are needed')
  }
  const sizes = readSizes(sizeTable)
  if (sizes.reduce((sum, size) => sum + size, 0) !== data.length) {
    throw new Error('the encoder wrote an MP4 whose frames are not side by side')
  }
  return { parameters, data, sizes, keyFrames: findKeyFrames(data, sizes) }
}

function readSizes(table: Buffer): number[] {
  const same = table.readUInt32BE(4)
  const count = table.readUInt32BE(8)
  return Array.from({ length: count }, (_, index) => same || table.readUInt32BE(12 + index * 4))
}

function findKeyFrames(data: Buffer, sizes: readonly number[]): number[] {
  const found: number[] = []
  let start = 0
  for (const [index, size] of sizes.entries()) {
    for (let at = start; at + 4 < start + size; at += 4 + data.readUInt32BE(at)) {
      if (((data[at + 4] ?? 0) & 0x1f) === IDR_SLICE) {
        found.push(index + 1)
        break
      }
    }
    start += size
  }
  return found
}

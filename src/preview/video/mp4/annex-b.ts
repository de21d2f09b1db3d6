// A bare H.264 stream (ISO/IEC 14496-10, Annex B: units parted by 00 00 01) as the parts of an MP4.
import { numbers, shorts } from './boxes.js'
import type { Track } from './encoder-mp4.js'

const SLICE = 1
const IDR_SLICE = 5
const SEQUENCE_PARAMETERS = 7
const PICTURE_PARAMETERS = 8
const DELIMITER = 9
const HIGH_PROFILE = 100

/** Throws when parameters are missing. Every frame has to begin with a delimiter (AUD). */
export function readStream(stream: Buffer): Track {
  let sequence: Buffer | undefined
  let picture: Buffer | undefined
  const data: Buffer[] = []
  const sizes: number[] = []
  const keyFrames: number[] = []
  for (const unit of unitsOf(stream)) {
    const type = (unit[0] ?? 0) & 0x1f
    if (type === SEQUENCE_PARAMETERS) sequence ??= unit
    else if (type === PICTURE_PARAMETERS) picture ??= unit
    else if (type === DELIMITER) sizes.push(0)
    else if (type === SLICE || type === IDR_SLICE) {
      data.push(numbers(unit.length), unit)
      sizes.push((sizes.pop() ?? 0) + unit.length + 4)
      if (type === IDR_SLICE && keyFrames.at(-1) !== sizes.length) keyFrames.push(sizes.length)
    }
  }
  if (sequence === undefined || picture === undefined) throw new Error('the encoder wrote no H.264')
  return { parameters: describe(sequence, picture), data: Buffer.concat(data), sizes, keyFrames }
}

function* unitsOf(stream: Buffer): Generator<Buffer> {
  const mark = Buffer.from([0, 0, 1])
  let at = stream.indexOf(mark)
  while (at >= 0) {
    const next = stream.indexOf(mark, at + 3)
    let end = next < 0 ? stream.length : next
    // The mark may have four bytes, and zeros may follow a unit.
    while (end > at + 3 && stream[end - 1] === 0) end--
    yield stream.subarray(at + 3, end)
    at = next
  }
}

/** The content of an `avcC` box (ISO/IEC 14496-15). */
function describe(sequence: Buffer, picture: Buffer): Buffer {
  const [, profile = 0, compatibility = 0, level = 0] = sequence
  const eightBits = 0xf8
  const extension = profile === HIGH_PROFILE ? [0xfc | 1, eightBits, eightBits, 0] : []
  return Buffer.concat([
    Buffer.from([1, profile, compatibility, level, 0xff, 0xe1]),
    shorts(sequence.length),
    sequence,
    Buffer.from([1]),
    shorts(picture.length),
    picture,
    Buffer.from(extension),
  ])
}

// Narrows the types of the accepted input, and computes the size in pixels. The service has validated the input against
// the model's schema and applied the defaults. An invalid input is therefore a bug in the caller, and throws.

export interface ImageRequest {
  readonly prompt: string
  readonly aspectRatio: string
  readonly quality: 'basic' | 'high'
}

export interface VideoRequest {
  readonly prompt: string
  readonly aspectRatio: string
  readonly resolution: '720p' | '1080p'
  readonly seconds: 5 | 10
}

type Input = Readonly<Record<string, unknown>>

export function imageRequest(input: Input): ImageRequest {
  const quality = oneOf(input, 'quality', ['basic', 'high'])
  return { prompt: text(input, 'prompt'), aspectRatio: text(input, 'aspect_ratio'), quality }
}

export function videoRequest(input: Input): VideoRequest {
  const resolution = oneOf(input, 'resolution', ['720p', '1080p'])
  const seconds = oneOf(input, 'duration', ['5', '10']) === '5' ? 5 : 10
  return { prompt: text(input, 'prompt'), aspectRatio: text(input, 'aspect_ratio'), resolution, seconds }
}

function text(input: Input, name: string): string {
  const value = input[name]
  if (typeof value !== 'string') throw new TypeError(`the preview renderer needs ${name} as a string`)
  return value
}

function oneOf<const Value extends string>(input: Input, name: string, values: readonly Value[]): Value {
  const found = values.find((value) => value === input[name])
  if (found === undefined)
    throw new TypeError(`the preview renderer needs ${name} as one of ${values.join(', ')}`)
  return found
}

/**
 * Size in pixels. Both sides are even, because H.264 in yuv420p halves them. The rule also applies to pictures, so that
 * a picture and a film of the same ratio match.
 */
export interface Size {
  readonly width: number
  readonly height: number
}

const BASIC_PIXELS = 1024 * 1024
const HIGH_LONGER_SIDE = 3840
const LINES = { '720p': 720, '1080p': 1080 } as const

/**
 * `basic`: the exact ratio at the size nearest to one megapixel (1:1 is 1024x1024, 16:9 is 1376x774). `high`: the
 * longer side is 3840, and the shorter side is rounded to an even number (21:9 is 3840x1646).
 */
export function imageSize(request: Pick<ImageRequest, 'aspectRatio' | 'quality'>): Size {
  const ratio = parseRatio(request.aspectRatio)
  if (request.quality === 'basic') {
    const unit = even(Math.sqrt(BASIC_PIXELS / (ratio.width * ratio.height)))
    return { width: ratio.width * unit, height: ratio.height * unit }
  }
  const unit = HIGH_LONGER_SIDE / Math.max(ratio.width, ratio.height)
  return { width: even(ratio.width * unit), height: even(ratio.height * unit) }
}

/**
 * Returns the size of a film. The shorter side is 720 at 720p and 1080 at 1080p (9:16 at 720p is 720x1280, 21:9 is
 * 1680x720).
 */
export function videoSize(request: Pick<VideoRequest, 'aspectRatio' | 'resolution'>): Size {
  const ratio = parseRatio(request.aspectRatio)
  const unit = LINES[request.resolution] / Math.min(ratio.width, ratio.height)
  return { width: even(ratio.width * unit), height: even(ratio.height * unit) }
}

function parseRatio(text: string): Size {
  const [width, height] = text.split(':').map(Number)
  if (!width || !height || width < 1 || height < 1) throw new TypeError(`not an aspect ratio: ${text}`)
  const divisor = greatestCommonDivisor(width, height)
  return { width: width / divisor, height: height / divisor }
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other)
}

/** Rounds to an even number. */
export function even(value: number): number {
  return Math.round(value / 2) * 2
}

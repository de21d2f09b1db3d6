// The accepted input, narrowed. The service has validated it against the model's schema and filled in the defaults,
// so anything else here is a mistake of the caller's and is thrown as one.

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

/** What a run costs in the local service, and the defaults of parameters that the price depends on (CONTRACT 9). */
import type { Kind } from './models.js'

/** Defaults of parameters: the interface does not publish its own. */
export const LOCAL_DEFAULTS: Readonly<Record<Kind, Readonly<Record<string, string | number | boolean>>>> = {
  video: { aspect_ratio: '16:9', resolution: '720p', duration: '5' },
  image: { aspect_ratio: '1:1', quality: 'basic' },
}

/** In credits. `input` matches the schema of its kind. */
export function priceOf(kind: Kind, input: Readonly<Record<string, unknown>>): number {
  const { quality, resolution, duration } = { ...LOCAL_DEFAULTS[kind], ...input }
  if (kind === 'image') return quality === 'high' ? 2 : 1
  return Number(duration) * (resolution === '1080p' ? 2 : 1)
}

/** `1 credit`, `5 credits`. */
export const credits = (amount: number): string => `${amount} credit${amount === 1 ? '' : 's'}`

/**
 * A profile of the config file: `{ baseUrl, models: { video, image }, …, apiKey: { value, origin } }`. The file may be
 * edited by hand: values of other shapes are ignored, and unknown keys are kept. Pure.
 */
import { isObject } from '../../protocol/parse.js'

export type RawProfile = Readonly<Record<string, unknown>>

export interface StoredKey {
  readonly value: string
  /** The key is sent to this origin only. */
  readonly origin: string
}

/** The profiles of a config file by name. */
export const profilesIn = (file: unknown): Readonly<Record<string, unknown>> =>
  isObject(file) && isObject(file.profiles) ? file.profiles : {}

export function profileIn(file: unknown, name: string): RawProfile {
  const profiles = profilesIn(file)
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  return isObject(found) ? found : {}
}

const valueAt = (profile: RawProfile, key: string): unknown =>
  key.split('.').reduce<unknown>((holder, part) => (isObject(holder) ? holder[part] : undefined), profile)

/** A setting as text; a list is joined by commas. */
const asText = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string').join(',')
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** The values of the given keys that are set in the profile. */
export const settingsOf = (profile: RawProfile, keys: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    keys.flatMap((key) => {
      const value = asText(valueAt(profile, key))
      return value === undefined || value === '' ? [] : [[key, value]]
    }),
  )

export function storedKeyOf({ apiKey }: RawProfile): StoredKey | undefined {
  return isObject(apiKey) && typeof apiKey.value === 'string' && typeof apiKey.origin === 'string'
    ? { value: apiKey.value, origin: apiKey.origin }
    : undefined
}

/** The paths of the API keys in a config file other than the one that `rushes login` stores. */
export function unreadKeysIn(file: unknown, profile: string): readonly string[] {
  const raw = profileIn(file, profile)
  const keysOf = (holder: unknown) =>
    Object.keys(isObject(holder) ? holder : {}).filter((key) => /^api[-_]?key$/i.test(key))
  const isStored = (key: string) => key === 'apiKey' && storedKeyOf(raw) !== undefined
  const unread = keysOf(raw).filter((key) => !isStored(key))
  return [...keysOf(file), ...unread.map((key) => `profiles.${profile}.${key}`)]
}

/** The profile with a value set, or removed when undefined. A group that becomes empty is removed too. */
export function withValue(profile: RawProfile, key: string, value: unknown): RawProfile {
  const [first = '', ...rest] = key.split('.')
  const { [first]: old, ...others } = profile
  if (rest.length === 0) return value === undefined ? others : { ...others, [first]: value }
  const group = withValue(isObject(old) ? old : {}, rest.join('.'), value)
  return Object.keys(group).length === 0 ? others : { ...others, [first]: group }
}

/**
 * The environment of an engine's process: that of the service without what opens the service, its database, its storage and its
 * Redis server.
 */

export type Env = Readonly<Record<string, string | undefined>>

/** `CREDENTIALS_DIRECTORY`: where systemd puts the secrets of a unit. */
const OWN_NAMES = /^(RUSHES_|PG|AWS_|CREDENTIALS_DIRECTORY$)/
/** Their values are secrets under any other name too. */
const SECRET_NAMES = [
  'RUSHES_API_KEY',
  'RUSHES_DATABASE_URL',
  'RUSHES_LIMITS_URL',
  'PGPASSWORD',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
] as const

/**
 * For the command of a user: also without variables that hold a secret of the service under another name, such as
 * `DATABASE_URL`. `urls`: those of the service's database and storage. The rest is for the model (PATH, CUDA, its own keys).
 */
export function commandEnvironment(env: Env, urls: readonly (string | undefined)[] = []): Env {
  const secrets = [...urls, ...SECRET_NAMES.map((name) => env[name])].filter(
    (text): text is string => text !== undefined && text !== '',
  )
  const words = secrets.flatMap(passwordsOf).filter((word) => word.length >= MIN_SECRET_LENGTH)
  const patterns = words.map(whole)
  const places = secrets.filter(isUrl).map(placeOf)
  const isSecret = (value: string): boolean =>
    patterns.some((pattern) => pattern.test(value)) ||
    places.some((place) => (place.startsWith('//') ? value.includes(place) : placeOf(value) === place))
  return kept(env, (name, value) => !OWN_NAMES.test(name) && !isSecret(value))
}

/** A shorter password may be the value of any variable. */
const MIN_SECRET_LENGTH = 8

/** For the built-in renderer, which decodes images of strangers and connects to nothing: without anybody's secrets. */
export const rendererEnvironment = (env: Env): Env =>
  kept(
    env,
    (name, value) => !OWN_NAMES.test(name) && !NAMES_OF_SECRETS.test(name) && !URL_WITH_PASSWORD.test(value),
  )

const NAMES_OF_SECRETS = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|DATABASE_URL|REDIS_URL/i
const URL_WITH_PASSWORD = /:\/\/[^/\s]*:[^/\s]*@/

const kept = (env: Env, isKept: (name: string, value: string) => boolean): Env =>
  Object.fromEntries(Object.entries(env).filter(([name, value = '']) => isKept(name, value)))

/** What a URL has in common with the same one with other options: user, password and host, else all but the query. */
function placeOf(text: string): string {
  const authority = /:(\/\/[^/?#]*@[^/?#]*)/.exec(text)?.[1]
  return authority ?? text.replace(/[?#].*$/s, '').replace(/\/+$/, '')
}

const isUrl = (text: string): boolean => text.includes('://')

/** A password where a setting has it, as in `user:password@host` or `password=…`, and not a name in a path. */
const whole = (password: string): RegExp =>
  new RegExp(`(?:^|[\\s:=,;'"]|//)${password.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?:$|[\\s@,;'"&])`)

/** Of a URL as they are written and as they are typed, or the whole text, which is a password then. */
function passwordsOf(text: string): readonly string[] {
  if (!isUrl(text)) return [text]
  const inQuery = [...text.matchAll(/[?&](?:ssl)?password=([^&#]+)/g)].map(([, found = '']) => found)
  const encoded = [/:\/\/[^/?#:@]*:([^/?#]+)@/.exec(text)?.[1] ?? '', ...inQuery]
  return [...encoded, ...encoded.map(decoded)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

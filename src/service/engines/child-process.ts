/** Shared by the engines that run in child processes: an environment without secrets, and the end of standard error. */
import { stripVTControlCharacters } from 'node:util'

export type ChildEnvironment = Readonly<Record<string, string | undefined>>

/** Variables of the service, its database and its storage. `CREDENTIALS_DIRECTORY`: the secrets of a systemd unit. */
const SERVICE_NAMES = /^(RUSHES_|PG|AWS_|CREDENTIALS_DIRECTORY$)/
/** Their values are secrets under other names too. */
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
export function commandEnvironment(
  env: ChildEnvironment,
  urls: readonly (string | undefined)[] = [],
): ChildEnvironment {
  const secrets = [...urls, ...SECRET_NAMES.map((name) => env[name])].filter(
    (text): text is string => text !== undefined && text !== '',
  )
  const words = secrets.flatMap(passwordsOf).filter((word) => word.length >= MIN_SECRET_LENGTH)
  const patterns = words.map(whole)
  const places = secrets.filter(isUrl).map(placeOf)
  const isSecret = (value: string): boolean =>
    patterns.some((pattern) => pattern.test(value)) ||
    places.some((place) => (place.startsWith('//') ? value.includes(place) : placeOf(value) === place))
  return filtered(env, (name, value) => !SERVICE_NAMES.test(name) && !isSecret(value))
}

/** A shorter password may be the value of any variable by chance. */
const MIN_SECRET_LENGTH = 8

/** For the built-in renderer, which decodes untrusted images and connects to nothing: without any secret. */
export const rendererEnvironment = (env: ChildEnvironment): ChildEnvironment =>
  filtered(
    env,
    (name, value) =>
      !SERVICE_NAMES.test(name) && !NAMES_OF_SECRETS.test(name) && !URL_WITH_PASSWORD.test(value),
  )

const NAMES_OF_SECRETS = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|DATABASE_URL|REDIS_URL/i
const URL_WITH_PASSWORD = /:\/\/[^/\s]*:[^/\s]*@/

const filtered = (
  env: ChildEnvironment,
  isKept: (name: string, value: string) => boolean,
): ChildEnvironment =>
  Object.fromEntries(Object.entries(env).filter(([name, value = '']) => isKept(name, value)))

/** Equal for the same URL with other options: user, password and host, else all but the query. */
function placeOf(text: string): string {
  const authority = /:(\/\/[^/?#]*@[^/?#]*)/.exec(text)?.[1]
  return authority ?? text.replace(/[?#].*$/s, '').replace(/\/+$/, '')
}

const isUrl = (text: string): boolean => text.includes('://')

/** Matches a password as a part of a setting (`user:password@host`, `password=…`), and not as a name in a path. */
const whole = (password: string): RegExp =>
  new RegExp(`(?:^|[\\s:=,;'"]|//)${password.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?:$|[\\s@,;'"&])`)

/** The passwords of a URL, encoded and decoded; any other text is a password as a whole. */
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

const MAX_STDERR_CHARACTERS = 2_000

interface StderrTail {
  /** Without control characters; starts at the start of a line if possible. */
  readonly text: string
}

/**
 * The end of standard error, which usually contains the reason of a failure. Reads all of it: a full pipe would
 * block the process.
 */
export function readStderrTail(stream: NodeJS.ReadableStream | null): StderrTail {
  let tail = ''
  let isCut = false
  stream?.setEncoding('utf8')
  stream?.on('error', () => {})
  stream?.on('data', (chunk: string) => {
    tail += chunk
    // Keeps twice the returned length, so that not every chunk costs a copy.
    if (tail.length <= 2 * MAX_STDERR_CHARACTERS) return
    isCut = true
    tail = tail.slice(-MAX_STDERR_CHARACTERS)
  })
  return {
    get text() {
      const end = tail.slice(-MAX_STDERR_CHARACTERS)
      const isPart = isCut || end.length < tail.length
      return plainText(isPart ? end.replace(/^[^\n]*\n(?=.)/s, '') : end)
    },
  }
}

/** Removes terminal control sequences, and all but the last state of a progress bar. */
const plainText = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '')
    .trim()

/**
 * Functions for the engines that run in child processes: an environment without secrets, and the end of standard error.
 */
import { stripVTControlCharacters } from 'node:util'
import { percentDecoded } from '../../protocol/text.js'

export type ChildEnvironment = Readonly<Record<string, string | undefined>>

/**
 * Variables of the service, its database and its storage. `CREDENTIALS_DIRECTORY` contains the secrets of a systemd
 * unit. Windows ignores the case of names.
 */
const SERVICE_NAMES = /^(RUSHES_|PG|AWS_|CREDENTIALS_DIRECTORY$)/i
/** Variables whose values are also removed under any other name. */
const SECRET_NAMES = [
  'RUSHES_API_KEY',
  'RUSHES_DATABASE_URL',
  'PGPASSWORD',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]

/**
 * Returns the environment for the user's command. Removes the variables of the service, and variables such as
 * `DATABASE_URL` that hold a secret of the service under another name. `urls` are the URLs of the service's database
 * and storage. All other variables are kept, because the model may need them (PATH, CUDA, API keys of the model).
 */
export function commandEnvironment(
  env: ChildEnvironment,
  urls: readonly (string | undefined)[] = [],
): ChildEnvironment {
  const values = SECRET_NAMES.map((name) => env[name])
  const secrets = [...urls, ...values].filter((text): text is string => text !== undefined && text !== '')
  const passwords = secrets.flatMap(passwordsOf).filter((password) => password.length >= MIN_SECRET_LENGTH)
  const patterns = passwords.map(passwordPattern)
  // User, password and host, also of a URL with other options.
  const authorities = secrets.flatMap((text) => /:(\/\/[^/?#]*@[^/?#]*)/.exec(text)?.[1] ?? [])
  const isSecret = (value: string): boolean =>
    patterns.some((pattern) => pattern.test(value)) || authorities.some((each) => value.includes(each))
  return filtered(env, (name, value) => !SERVICE_NAMES.test(name) && !isSecret(value))
}

/** Shorter passwords are ignored: an unrelated variable may have the same value by chance. */
const MIN_SECRET_LENGTH = 8

/**
 * Returns the environment for the built-in renderer, without any secret. The renderer decodes untrusted images and
 * needs no network.
 */
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

const isUrl = (text: string): boolean => text.includes('://')

/**
 * Matches a password within a setting (`user:password@host`, `password=…`), but not a folder of this name in a path.
 */
const passwordPattern = (password: string): RegExp =>
  new RegExp(`(?:^|[\\s:=,;'"]|//)${password.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?:$|[\\s@,;'"&])`)

/** Returns the passwords in a URL, encoded and decoded. Text that is not a URL is a password itself. */
function passwordsOf(text: string): readonly string[] {
  if (!isUrl(text)) return [text]
  const inQuery = [...text.matchAll(/[?&](?:ssl)?password=([^&#]+)/g)].map(([, found = '']) => found)
  const encoded = [/:\/\/[^/?#:@]*:([^/?#]+)@/.exec(text)?.[1] ?? '', ...inQuery]
  return [...encoded, ...encoded.map(percentDecoded)]
}

const MAX_STDERR_CHARACTERS = 2_000

/**
 * Keeps the end of standard error, which usually contains the reason for a failure. Reads the whole stream, because a
 * full pipe would block the process. The returned function returns the text without control characters, from the beginning
 * of a line if possible.
 */
export function readStderrTail(stream: NodeJS.ReadableStream | null): () => string {
  let tail = ''
  let isCut = false
  stream?.setEncoding('utf8')
  stream?.on('error', () => {})
  stream?.on('data', (chunk: string) => {
    tail += chunk
    // Keep up to twice the returned length, so that not every chunk needs a copy.
    if (tail.length <= 2 * MAX_STDERR_CHARACTERS) return
    isCut = true
    tail = tail.slice(-MAX_STDERR_CHARACTERS)
  })
  return () => {
    const end = tail.slice(-MAX_STDERR_CHARACTERS)
    const isPart = isCut || end.length < tail.length
    return plainText(isPart ? end.replace(/^[^\n]*\n(?=.)/s, '') : end)
  }
}

/** Removes terminal control sequences. Keeps only the last state of a progress bar. */
const plainText = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '')
    .trim()

/** Missing settings, reported together as one error. */
import { OWN_CODES, RushesError, usageError } from '../../errors.js'
import { didYouMean } from '../help/find-command.js'

/** A setting that a command needs and that is not set. */
export interface Missing {
  readonly code: 'no_base_url' | 'no_api_key' | 'usage'
  readonly text: string
  readonly hint: string
}

export const NO_BASE_URL: Missing = {
  code: 'no_base_url',
  text: 'the service address',
  hint: 'Set the address with --base-url <url>, RUSHES_BASE_URL or `rushes config set baseUrl <url>`. To try rushes without a service, add --local.',
}

export const noKey = (baseUrl?: string): Missing => ({
  code: 'no_api_key',
  text: baseUrl === undefined ? 'the API key' : `the API key for ${new URL(baseUrl).origin}`,
  hint: 'Set the key with `rushes login`, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.',
})

/** One error for all missing settings, so that they can be fixed together. */
export function missingError(missing: readonly Missing[]): RushesError {
  const [first = NO_BASE_URL, ...others] = missing
  const usage = missing.some(({ code }) => OWN_CODES[code].exit === OWN_CODES.usage.exit)
  const code = missing.some((each) => each.code === 'no_base_url')
    ? 'no_base_url'
    : usage
      ? 'usage'
      : first.code
  const texts = [first, ...others].map(({ text }) => text)
  return new RushesError(code, `Not set: ${texts.join('; ')}.`, {
    hint: [first, ...others].map(({ hint }) => hint).join('\n  '),
  })
}

/** Throws `usage` for a profile that the config file does not have. */
export function checkProfile(name: string, known: readonly string[]): void {
  if (known.includes(name)) return
  const profiles = known.length === 0 ? 'It has no profiles yet.' : `Its profiles: ${known.join(', ')}.`
  throw usageError(
    `The config file has no profile "${name}".${didYouMean(name, known)}`,
    `${profiles} Create one with \`rushes login --profile <name>\` or \`rushes config set <key> <value> --profile <name>\`.`,
  )
}

/** Missing settings, reported together as one error. */
import { OWN_CODES, RushesError } from '../../errors.js'
import { nearest } from '../../protocol/nearest.js'

/** A setting that a command needs and that is not set. */
export interface Missing {
  readonly code: 'no_base_url' | 'no_api_key' | 'usage'
  readonly text: string
  readonly hint: string
}

export const NO_BASE_URL: Missing = {
  code: 'no_base_url',
  text: 'the service address',
  hint: 'Set the address: --base-url <url>, RUSHES_BASE_URL or rushes config set baseUrl <url>. To try without a service: --local.',
}

export const noKey = (baseUrl?: string): Missing => ({
  code: 'no_api_key',
  text: baseUrl === undefined ? 'the API key' : `the API key for ${new URL(baseUrl).origin}`,
  hint: 'Set the key: rushes login, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.',
})

/** One error for all missing settings, so that they can be fixed together. */
export function missingError(missing: readonly Missing[], note?: string): RushesError {
  const [first = NO_BASE_URL, ...others] = missing
  const usage = missing.some(({ code }) => OWN_CODES[code].exit === OWN_CODES.usage.exit)
  const code = missing.some((each) => each.code === 'no_base_url')
    ? 'no_base_url'
    : usage
      ? 'usage'
      : first.code
  const texts = [first, ...others].map(({ text }) => text)
  return new RushesError(code, `Not set: ${texts.join('; ')}.`, {
    hint: [...(note === undefined ? [] : [note]), ...[first, ...others].map(({ hint }) => hint)].join('\n  '),
  })
}

/** A sentence for a named profile that the config file does not have; undefined for the default one. */
export function unknownProfile(name: string, known: readonly string[]): string | undefined {
  if (name === 'default' || known.includes(name)) return undefined
  const near = nearest(name, known)
  const others = near === undefined ? '' : `; the nearest is ${near}`
  return `The config file has no profile "${name}"${others}.`
}

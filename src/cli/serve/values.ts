/** The values of the flags of `rushes serve`. All functions throw `usage`. */
import { usageError } from '../../errors.js'
import { shortened } from '../../protocol/text.js'
import { parseNetwork } from '../../service/rules/networks.js'
import { parseDuration } from '../flags/duration.js'
import { wholeNumber } from '../flags/whole-number.js'

const MIN_RETENTION_MS = 60_000

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
}

export function sizeOf(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? []
  const factor = SIZE_UNITS[unit.toLowerCase()]
  const bytes = Math.round(Number(amount) * (factor ?? Number.NaN))
  if (amount !== '' && bytes >= 1) return bytes
  throw usageError(`--body-limit: "${text}" is not a valid size.`, 'Examples: 64MiB, 500kB, 1048576.')
}

export const portOf = (text: string, flag: string): number => wholeNumber(text, flag, 0, 65_535)

/** That of `rushes serve` without flags. */
export const DEFAULT_PUBLIC_URL = 'http://127.0.0.1:7878'

/** As it was given, without slashes at the end. Paths are appended to it. */
export function publicUrlOf(text: string): string {
  const problem = publicUrlProblem(text)
  if (problem === undefined) return text.replace(/\/+$/, '')
  throw usageError(
    `--public-url: ${problem}.`,
    'Examples: https://runs.example.com, https://example.com/runs',
  )
}

function publicUrlProblem(text: string): string | undefined {
  // A URL parser ignores line ends and tabs.
  if (!/^https?:\/\/[^\s\p{C}]+$/iu.test(text) || !URL.canParse(text))
    return `"${shortened(text)}" is not an http or https URL`
  const { username, password } = new URL(text)
  // Not shown: it is a secret.
  if (username !== '' || password !== '') return 'the URL must not contain a user name or a password'
  if (/[?#]/.test(text)) return `"${shortened(text)}" must not contain a query or a fragment`
  return undefined
}

export function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain', 'Examples: 30d, 12h.')
  if (ms >= MIN_RETENTION_MS) return ms
  throw usageError(
    `--retain: ${text} is too short; the minimum is 1m.`,
    'To keep everything, leave --retain out.',
  )
}

export function networksOf(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--trust-proxy: "${text}" is not an IP address or CIDR range.`,
        'Examples: 10.0.0.7, 10.0.0.0/8.',
      )
  return texts
}

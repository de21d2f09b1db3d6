/** The values of the flags of `rushes serve`. All functions throw `usage`. */
import { usageError } from '../../errors.js'
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

export function publicUrlOf(text: string | undefined): string | undefined {
  if (text === undefined || (/^https?:\/\//i.test(text) && URL.canParse(text))) return text
  throw usageError(`--public-url: "${text}" is not an http or https URL.`)
}

export function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain')
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

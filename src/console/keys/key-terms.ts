/** Converts a key's limits to form fields, and form fields to a request body. */
import type { ConsoleKey, KeyTermsBody } from '../../protocol/console.js'
import { MAX_ALLOWED_IPS, MAX_CREDITS, MAX_TIME_MS } from '../../protocol/credentials.js'
import { printable } from '../../protocol/text.js'
import { formatNumber, formatTime } from '../format.js'

/** Form fields, as the user typed them. */
export interface KeyFields {
  readonly name: string
  readonly spendLimit: string
  readonly quota: string
  /** One IP address or CIDR range per line. */
  readonly addresses: string
  /** Last day on which the key works, such as 2026-01-31, in the browser's time zone. */
  readonly expires: string
}

export const NO_TERMS: KeyFields = { name: '', spendLimit: '', quota: '', addresses: '', expires: '' }

export type FieldErrors = Readonly<Partial<Record<keyof KeyFields, string>>>

export function fieldsOf(key: ConsoleKey): KeyFields {
  return {
    name: printable(key.name),
    spendLimit: key.spend_limit == null ? '' : String(key.spend_limit),
    quota: key.quota == null ? '' : String(key.quota),
    addresses: (key.allowed_ips ?? []).join('\n'),
    expires: key.expires_at == null ? '' : dayOf(key.expires_at),
  }
}

/** Calendar day of a time, in the browser's time zone. */
function dayOf(iso: string): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return ''
  const twoDigits = (part: number) => String(part).padStart(2, '0')
  return `${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`
}

export function checkFields(fields: KeyFields, before: KeyFields, now: number): FieldErrors {
  const { name, spendLimit, quota, addresses, expires } = fields
  const isNewDay = expires !== '' && expires !== before.expires
  const end = endOfDay(expires)
  return {
    ...(name.trim() === '' && {
      name: 'Enter a name, for example of the program that uses the key.',
    }),
    ...problemOf('spendLimit', spendLimit),
    ...problemOf('quota', quota),
    ...(isNewDay && !(end > now && end <= MAX_TIME_MS) && { expires: 'Choose today or a later day.' }),
    ...((addressesOrNull(addresses)?.length ?? 0) > MAX_ALLOWED_IPS && {
      addresses: `Enter at most ${MAX_ALLOWED_IPS} addresses.`,
    }),
  }
}

function problemOf(field: 'spendLimit' | 'quota', text: string): FieldErrors {
  const value = text.trim() === '' ? 0 : Number(text)
  if (!(value >= 0)) return { [field]: 'Enter 0 or more, or leave empty for no limit.' }
  if (!/^\d*$/.test(text.trim())) return { [field]: 'Enter a whole number.' }
  return value > MAX_CREDITS ? { [field]: `Enter at most ${formatNumber(MAX_CREDITS)}.` } : {}
}

/** Hint below the expiry field. Shows the time if the key does not expire at the end of a day. */
export function expiryHint(expires: string, key: ConsoleKey | undefined, timeZone?: string): string {
  const at = key?.expires_at ?? ''
  const isEndOfDay = Math.floor(Date.parse(at) / 1000) === endOfDay(expires) / 1000
  return expires === '' || expires !== dayOf(at) || isEndOfDay
    ? 'Works until the end of this day'
    : `Works until ${formatTime(at, timeZone)}`
}

const endOfDay = (day: string): number => Date.parse(`${day}T23:59:59`)

/** Request body with the fields that differ from `before`. */
export function termsOf(fields: KeyFields, before: KeyFields): KeyTermsBody {
  const isChanged = (name: keyof KeyFields) => fields[name].trim() !== before[name].trim()
  return {
    ...(isChanged('name') && { name: fields.name.trim() }),
    ...(isChanged('spendLimit') && { spend_limit: numberOrNull(fields.spendLimit) }),
    ...(isChanged('quota') && { quota: numberOrNull(fields.quota) }),
    ...(isChanged('addresses') && { allowed_ips: addressesOrNull(fields.addresses) }),
    ...(isChanged('expires') && {
      expires_at: fields.expires === '' ? null : new Date(endOfDay(fields.expires)).toISOString(),
    }),
  }
}

const numberOrNull = (text: string): number | null => (text.trim() === '' ? null : Number(text.trim()))

function addressesOrNull(text: string): readonly string[] | null {
  const addresses = text.split(/[\s,]+/).filter((each) => each !== '')
  return addresses.length === 0 ? null : addresses
}

/** What a key may do, as the fields of a form and as the body of a request. Pure. */
import type { ConsoleKey, KeyTermsBody } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'

/** As typed. */
export interface KeyFields {
  readonly name: string
  readonly spendLimit: string
  readonly quota: string
  /** One address or network per line. */
  readonly addresses: string
  /** A day, as 2026-01-31; the key works until its end, in the time zone of the browser. */
  readonly expires: string
}

export const NO_TERMS: KeyFields = { name: '', spendLimit: '', quota: '', addresses: '', expires: '' }

export type FieldErrors = Readonly<Partial<Record<keyof KeyFields, string>>>

export function fieldsOf(key: ConsoleKey): KeyFields {
  return {
    name: printable(key.name),
    spendLimit: key.spend_limit === null ? '' : String(key.spend_limit),
    quota: key.quota === null ? '' : String(key.quota),
    addresses: (key.allowed_ips ?? []).join('\n'),
    expires: key.expires_at === null ? '' : dayOf(key.expires_at),
  }
}

/** The day of a time in the time zone of the browser. */
function dayOf(iso: string): string {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return ''
  const two = (part: number) => String(part).padStart(2, '0')
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
}

export function checkFields(fields: KeyFields, before: KeyFields, now: number): FieldErrors {
  const { name, spendLimit, quota, expires } = fields
  const isNewDay = expires !== '' && expires !== before.expires
  return {
    ...(name.trim() === '' && {
      name: 'Enter a name, for example the computer or the job that uses the key.',
    }),
    ...(!isEmptyOr(isAmount, spendLimit) && {
      spendLimit: 'Enter a number of credits, 0 or more, or nothing.',
    }),
    ...(!isEmptyOr(isCount, quota) && { quota: 'Enter a whole number of runs, 0 or more, or nothing.' }),
    ...(isNewDay && !(endOfDay(expires) > now) && { expires: 'Choose today or a later day.' }),
  }
}

const isEmptyOr = (isValid: (text: string) => boolean, text: string) =>
  text.trim() === '' || isValid(text.trim())
const isAmount = (text: string) => /^\d{1,15}(\.\d+)?$/.test(text)
const isCount = (text: string) => /^\d{1,15}$/.test(text)
const endOfDay = (day: string): number => Date.parse(`${day}T23:59:59`)

/** The fields that differ from `before`, as the service takes them. */
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

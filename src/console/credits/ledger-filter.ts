/** The filter of the ledger, in the fragment of the page and in the query of the request. Pure. */
import type { EntriesQuery, Entry } from '../../protocol/console.js'

export const ENTRY_KINDS: Readonly<Record<Entry['kind'], string>> = {
  charge: 'Charge',
  refund: 'Refund',
  added: 'Added',
}

/** Empty: any. */
export interface LedgerFilter {
  readonly kind: string
  readonly key: string
  readonly from: string
  readonly to: string
}

const isDay = (text: string): boolean => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))

/** What is not valid is left out. */
export function readFilter(query: Readonly<Record<string, string>>): LedgerFilter {
  const { kind = '', key = '', from = '', to = '' } = query
  return {
    kind: Object.hasOwn(ENTRY_KINDS, kind) ? kind : '',
    key: /^[1-9]\d{0,14}$/.test(key) ? key : '',
    from: isDay(from) ? from : '',
    to: isDay(to) ? to : '',
  }
}

/** The parts of the filter that are set. */
export const entriesQuery = (filter: LedgerFilter): Omit<EntriesQuery, 'kind'> & { readonly kind?: string } =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))

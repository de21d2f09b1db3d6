/** Rows to the values of the contract, where SQLite and PostgreSQL give the same. */

import { MAX_ACTIVE_KEYS, MAX_TIME_MS } from '../../protocol/key-terms.js'
import type { AccountState } from '../rules/budget.js'
import type { KeyRecord } from '../rules/caller.js'
import { Refusal } from '../rules/refusal.js'
import type { RunFailure, StoredInput, StoredOutput, StoredRun } from '../stored-run.js'
import type {
  AccountRecord,
  KeyDetails,
  KeyTerms,
  LedgerEntry,
  LedgerEntryKind,
  Verification,
} from './account-store.js'

export type Row = Readonly<Record<string, unknown>>

export const textOr = (value: unknown): string | undefined => (value === null ? undefined : String(value))

/** SQLite has no booleans: they are 0 and 1. */
export const isSet = (value: unknown): boolean => Boolean(value)

export const numberOr = (value: unknown): number | undefined => (value === null ? undefined : Number(value))

/** SQLite has no lists: they are JSON. */
const listOr = (value: unknown): readonly string[] | undefined =>
  ((typeof value === 'string' ? JSON.parse(value) : value) as readonly string[] | null) ?? undefined

/** Earlier versions accepted lifetimes beyond any date. */
const timeOr = (value: unknown): number | undefined =>
  value === null ? undefined : Math.min(Number(value), MAX_TIME_MS)

const limitsOf = (row: Row) => ({
  disabled: isSet(row.disabled),
  expiresAtMs: timeOr(row.expires_at),
  allowedIps: listOr(row.allowed_ips),
  rate:
    row.rate_requests === null
      ? undefined
      : { requests: Number(row.rate_requests), windowMs: Number(row.rate_window_ms) },
})

export const keyOfRow = (row: Row): KeyRecord => ({
  ...limitsOf(row),
  id: Number(row.id),
  accountId: Number(row.account_id),
  hash: String(row.hash),
  banned: isSet(row.banned),
})

export const keyDetailsOfRow = (row: Row): KeyDetails => ({
  ...limitsOf(row),
  id: Number(row.id),
  account: String(row.account),
  name: String(row.name),
  prefix: textOr(row.prefix),
  spendLimit: numberOr(row.spend_limit),
  spent: Number(row.spent),
  quota: numberOr(row.quota),
  used: Number(row.used),
  createdAtMs: Number(row.created_at),
  usedAtMs: numberOr(row.last_used_at),
  rotatesUntilMs: numberOr(row.old_until),
})

/** Throws `Refusal`: another key that is not disabled would be one too many. */
export function checkActiveKeys(row: Row | undefined): void {
  if (Number(row?.active) >= MAX_ACTIVE_KEYS) throw new Refusal('too_many_keys')
}

/** The terms of a key in the order of the parameters; `encode` gives what the database has for a boolean or a list. */
export const termValues = <Value>(
  { disabled = false, expiresAtMs, spendLimit, quota, allowedIps, rate }: Partial<KeyTerms>,
  encode: (value: boolean | readonly string[]) => Value,
): readonly (Value | number | null)[] => [
  encode(disabled),
  expiresAtMs ?? null,
  spendLimit ?? null,
  quota ?? null,
  allowedIps === undefined ? null : encode(allowedIps),
  rate?.requests ?? null,
  rate?.windowMs ?? null,
]

export const accountOfRow = (row: Row): AccountRecord => ({
  id: Number(row.id),
  name: String(row.name),
  balance: Number(row.balance),
  banned: isSet(row.banned),
  keys: Number(row.keys),
  runs: Number(row.runs),
  createdAtMs: Number(row.created_at),
})

export const accountStateOfRow = (row: Row): AccountState => ({
  spent: Number(row.spent),
  spendLimit: numberOr(row.spend_limit),
  used: Number(row.used),
  quota: numberOr(row.quota),
  balance: Number(row.balance),
  disabled: isSet(row.disabled),
  expiresAtMs: timeOr(row.expires_at),
  banned: isSet(row.banned),
})

/** Of a run that is created on the console, without a key. */
export const keylessStateOf = ({ balance, banned }: Row): AccountState => ({
  spent: 0,
  spendLimit: undefined,
  used: 0,
  quota: undefined,
  balance: Number(balance),
  disabled: false,
  expiresAtMs: undefined,
  banned: isSet(banned),
})

export const ledgerEntryOfRow = (row: Row): LedgerEntry => ({
  sequence: Number(row.sequence),
  account: String(row.account),
  kind: row.kind as LedgerEntryKind,
  amount: Number(row.amount),
  runId: textOr(row.run_id),
  keyId: numberOr(row.key_id),
  createdAtMs: Number(row.created_at),
})

/** From the rows of each of the ledger's statements. */
export function verificationOf([
  totals = [],
  notRecorded = [],
  ...checks
]: readonly (readonly Row[])[]): Verification {
  const [row] = totals
  return {
    accounts: Number(row?.accounts ?? 0),
    entries: Number(row?.entries ?? 0),
    runs: Number(row?.runs ?? 0),
    credits: Number(row?.credits ?? 0),
    problems: checks.flatMap((rows) => rows.map(({ problem }) => String(problem))),
    notRecorded: notRecorded.map((row) => ({
      runId: String(row.id),
      account: String(row.account),
      credits: Number(row.credits),
    })),
  }
}

/** A damaged input fails its own run alone: if it rejected a claim, every later one would meet it again. */
export function withInput(run: Omit<StoredRun, 'input'>, text: unknown): StoredRun {
  try {
    return { ...run, input: JSON.parse(String(text)) as StoredInput }
  } catch {
    return { ...run, input: {}, failure: run.failure ?? DAMAGED_INPUT }
  }
}

const DAMAGED_INPUT: RunFailure = {
  code: 'render_failed',
  message: 'The stored input of this run is damaged.',
}

export const outputOfRow = (row: Row): StoredOutput => ({
  token: String(row.token),
  name: String(row.name),
  contentType: String(row.content_type),
  bytes: Number(row.bytes),
  sha256: String(row.sha256),
})

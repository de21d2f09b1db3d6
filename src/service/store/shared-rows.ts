/** Rows to the values of the contract, where SQLite and PostgreSQL give the same. */
import type { AccountState } from '../rules/budget.js'
import type { StoredOutput } from '../stored-run.js'
import type { LedgerEntry, LedgerEntryKind, Verification } from './account-store.js'

type Row = Readonly<Record<string, unknown>>

export const numberOr = (value: unknown): number | undefined => (value === null ? undefined : Number(value))

export const accountStateOfRow = (row: Row): AccountState => ({
  spent: Number(row.spent),
  spendLimit: numberOr(row.spend_limit),
  used: Number(row.used),
  quota: numberOr(row.quota),
  balance: Number(row.balance),
})

export const ledgerEntryOfRow = (row: Row): LedgerEntry => ({
  sequence: Number(row.sequence),
  account: String(row.account),
  kind: row.kind as LedgerEntryKind,
  amount: Number(row.amount),
  runId: row.run_id === null ? undefined : String(row.run_id),
  keyId: numberOr(row.key_id),
  createdAtMs: Number(row.created_at),
})

/** From the rows of each of the ledger's statements. */
export function verificationOf([totals = [], ...checks]: readonly (readonly Row[])[]): Verification {
  const [row] = totals
  return {
    accounts: Number(row?.accounts ?? 0),
    entries: Number(row?.entries ?? 0),
    runs: Number(row?.runs ?? 0),
    credits: Number(row?.credits ?? 0),
    problems: checks.flatMap((rows) => rows.map(({ problem }) => String(problem))),
  }
}

export const outputOfRow = (row: Row): StoredOutput => ({
  token: String(row.token),
  name: String(row.name),
  contentType: String(row.content_type),
  bytes: Number(row.bytes),
  sha256: String(row.sha256),
})

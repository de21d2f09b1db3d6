/** Recomputes all sums of the ledger. */
import type { Row } from '../../../host/database.js'
import type { Verification } from '../account-store.js'
import { ACCOUNT_SQL, CHECKS } from './account-statements.js'

export const LEDGER_STATEMENTS: readonly string[] = [ACCOUNT_SQL.totals, ...CHECKS]

/** From the rows of each of the statements. */
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

/** The statements that recompute all sums of the ledger. */
import { ACCOUNT_SQL, CHECKS } from './account-statements.js'

export const LEDGER_STATEMENTS: readonly string[] = [ACCOUNT_SQL.totals, ACCOUNT_SQL.notRecorded, ...CHECKS]

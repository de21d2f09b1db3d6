/** The limit of what the estimates of 24 hours may sum to, those of all processes together. */
import { RushesError } from '../errors.js'
import type { OpenDatabase } from '../host/database.js'
import { amountText } from '../protocol/price.js'

export interface DayLimit {
  readonly millionths: number
  /** Estimates in other currencies are not in the sum. */
  readonly currency: string
}

const DAY_MS = 86_400_000

/** Every row counts, also a failed run: whether the service refunds it is not known. A create that was not sent has no row. */
const LAST_DAY = 'FROM runs INDEXED BY runs_by_time WHERE created_at > ? AND currency = ?'

const DAY_SUM = `SELECT sum(estimate / 1000000) AS units, sum(estimate % 1000000) AS millionths ${LAST_DAY}`
const DAY_ESTIMATES = `SELECT created_at, estimate ${LAST_DAY} AND estimate > 0 ORDER BY created_at`

/** Throws `usage` if creates with this estimate would pass the limit now. What is free always passes. */
export function checkDay(db: OpenDatabase, limit: DayLimit, millionths: number, nowMs: number): void {
  const { currency } = limit
  const since = [nowMs - DAY_MS, currency] as const
  const sum = db.get(DAY_SUM, ...since)
  const spent = BigInt(Number(sum?.units ?? 0)) * 1_000_000n + BigInt(Number(sum?.millionths ?? 0))
  const over = spent + BigInt(millionths) - BigInt(limit.millionths)
  if (millionths === 0 || over <= 0n) return
  throw new RushesError(
    'usage',
    `The estimate is ${amountText(millionths, currency)}, and that of the last 24 hours ${amountText(spent, currency)}, ` +
      `but maxCostPerDay allows ${amountText(limit.millionths, currency)}: its create was not sent.`,
    {
      hint:
        `${freeText(db.all(DAY_ESTIMATES, ...since), over)} To change the limit: ` +
        '`rushes config set maxCostPerDay <amount>`, or RUSHES_MAX_COST_PER_DAY.',
    },
  )
}

/** When the oldest estimates are older than 24 hours, so that there is room. */
function freeText(oldest: ReturnType<OpenDatabase['all']>, over: bigint): string {
  let rest = over
  for (const { created_at, estimate } of oldest) {
    rest -= BigInt(Number(estimate))
    if (rest > 0n) continue
    const at = new Date(Number(created_at) + DAY_MS)
    return `There is room again at ${at.toISOString().replace(/:\d\d\.\d+Z/, 'Z')}.`
  }
  return 'The estimate alone is higher than the limit.'
}

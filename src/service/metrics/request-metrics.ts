/** Requests, connections and refusals. Clients choose addresses and methods, so the labels are closed lists. */
import type { HttpMetrics } from '../http/observe-requests.js'
import { REFUSALS, type RefusalCode } from '../rules/refusal.js'
import type { Instruments, OnScrape } from './instruments.js'

const NO_ROUTE = 'none'
const OTHER_METHOD = 'other'
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST']

/** Which limit a refusal is of. */
const LIMITS: Partial<Readonly<Record<RefusalCode, string>>> = {
  RATE_LIMITED: 'rate',
  USAGE_EXCEEDED: 'quota',
  api_key_spend_limit_exceeded: 'spend_limit',
  insufficient_balance: 'balance',
  overloaded: 'bodies',
}

type Used = Pick<Instruments, 'requests' | 'requestSeconds' | 'connections' | 'bodyBytes' | 'refusals'>

export const createRequestMetrics = (
  { requests, requestSeconds, connections, bodyBytes, refusals }: Used,
  onScrape: OnScrape,
): HttpMetrics => ({
  countRequest({ method = '', route = NO_ROUTE, status, ms }) {
    requests.inc({ method: METHODS.includes(method) ? method : OTHER_METHOD, route, status })
    if (ms !== undefined) requestSeconds.observe({ route }, ms / 1_000)
  },
  countRefusal({ code, message }) {
    // Other work that is too much has the same code, and a sentence of its own.
    const isOther = code === 'overloaded' && message !== REFUSALS.overloaded.cause
    const limit = LIMITS[code]
    if (limit !== undefined && !isOther) refusals.inc({ limit })
  },
  countDroppedConnection: () => refusals.inc({ limit: 'connections' }),
  measureHttp(readings) {
    onScrape(async () => {
      bodyBytes.set(readings.bodyBytes())
      connections.set(await readings.countConnections())
    })
  },
})

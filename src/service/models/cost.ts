/** The operator's side of a model: the map `cost` of its document, and servers that charge. */
import type { Cost, ModelSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { type ReportProblem, readPrice } from '../../protocol/price.js'
import { PROVIDERS } from '../engines/hosted/providers.js'
import { isPrivateHost } from '../rules/networks.js'

/**
 * Returns the cost of a document: the map `cost`, else `unknown` for an engine that charges. Undefined if its runs cost
 * nothing.
 */
export function readCost(
  { cost, engine }: Readonly<Record<string, unknown>>,
  schema: ModelSchema | undefined,
  report: ReportProblem,
): Cost | 'unknown' | undefined {
  if (cost === undefined || cost === null) return chargesForRuns(engine) ? 'unknown' : undefined
  const price = readPrice(cost, schema, report, 'cost')
  const currency = isObject(cost) ? cost.currency : undefined
  const isCurrency = typeof currency === 'string' && /^[^\s\p{C}]{1,16}$/u.test(currency)
  if (!isCurrency) report(['cost', 'currency'], 'must be a currency, such as USD')
  return isCurrency && price !== undefined ? { ...price, currency } : 'unknown'
}

/**
 * Whether each run of an engine without a `cost` may cost money: it is a hosted provider, or a server at a public
 * address. A name counts as public unless it is one of a local network; it is not resolved.
 */
export function chargesForRuns(engine: unknown): boolean {
  const { type, url } = isObject(engine) ? engine : {}
  if (typeof type === 'string' && PROVIDERS[type]?.isPaid) return true
  return typeof url === 'string' && URL.canParse(url) && !isPrivateHost(new URL(url).hostname)
}

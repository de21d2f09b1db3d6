/** The prices that fal publishes: an amount for a unit, which is free text. */
import type { Cost, Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { PROVIDERS } from '../../service/engines/hosted/providers.js'
import type { Context } from '../context/context.js'
import { getJson } from './published.js'

export interface UnitPrice {
  readonly amount: number
  /** `image`, `megapixel`, `second` … */
  readonly unit: string
  readonly currency: string
}

const MAX_ENDPOINTS = 50

/** Resolves with the prices that are known, by endpoint. Rejects with the errors of `getJson`. */
export async function fetchFalPrices(
  ctx: Context,
  endpoints: readonly string[],
): Promise<ReadonlyMap<string, UnitPrice>> {
  const url = new URL(`${PROVIDERS.fal?.api}/models/pricing`)
  url.searchParams.set('endpoint_id', endpoints.slice(0, MAX_ENDPOINTS).join(','))
  const value = await getJson(ctx, url)
  const entries = isObject(value) && Array.isArray(value.prices) ? value.prices.filter(isObject) : []
  return new Map(
    entries.flatMap(({ endpoint_id: name, unit_price: amount, unit, currency = 'USD' }) => {
      const isPrice = typeof amount === 'number' && amount >= 0 && Number.isFinite(amount)
      if (typeof name !== 'string' || !isPrice || typeof unit !== 'string') return []
      return [[name, { amount, unit: shortened(printable(unit), 40), currency: printable(String(currency)) }]]
    }),
  )
}

export const unitPriceText = ({ amount, unit, currency }: UnitPrice): string =>
  `${amount} ${currency} per ${unit}`

/** Returns the cost of a run that makes one image or video. Undefined for every other unit. */
export function costOf({ amount, unit, currency }: UnitPrice, kind: Kind): Cost | undefined {
  const run = Number(amount.toFixed(6))
  return new RegExp(`^${kind}s?$`, 'i').test(unit) && run > 0 ? { run, factors: {}, currency } : undefined
}

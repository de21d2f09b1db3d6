/** Refuses the prices of an old list, before a limit of the cost is checked. */
import { usageError } from '../../errors.js'
import type { KnownModels } from './known-models.js'
import type { Prices } from './prices.js'

/**
 * Throws `usage` if the price of a model is from a service's list that is older than a day: the service may have changed
 * it. Call this after `learn`.
 */
export function refuseOldPrices(models: KnownModels, prices: Prices, names: Iterable<string>): void {
  for (const name of new Set(names)) {
    const askedAtMs = models.oldListOf(name)
    const document = askedAtMs === undefined ? undefined : models.find(name)
    if (askedAtMs === undefined || document === undefined || prices.find(document)?.source !== 'document')
      continue
    const date = new Date(askedAtMs).toISOString().slice(0, 10)
    throw usageError(
      `The service's list of models could not be read since ${date}, so the price of ${name} may have changed and ` +
        '--max-cost cannot be checked. Nothing was sent.',
      'Run `rushes models --refresh` to see why, set the price in the config, or remove the limit.',
    )
  }
}

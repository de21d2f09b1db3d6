/** `rushes models search`: finds models of the hosted providers. */
import { EXIT, RushesError } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { PROVIDERS, type Provider } from '../../service/engines/hosted/providers.js'
import type { Context } from '../context/context.js'
import { printList } from '../terminal/table.js'
import { fetchFalPrices, type UnitPrice } from './fal-prices.js'
import { getJson, keyOf, kindOf, kindOfCategory, readPublished } from './published.js'

interface FoundModel {
  /** As `rushes models import` takes it: `fal:fal-ai/flux/dev`. */
  readonly name: string
  readonly kind: Kind | undefined
  readonly price: UnitPrice | undefined
  /** How often it was run; fal does not publish that. */
  readonly runs: number | undefined
  readonly description: string
}

const MAX_PER_PROVIDER = 20

export async function searchCommand(ctx: Context, words: readonly string[]): Promise<number> {
  const query = words.join(' ')
  const searches = { fal: searchFal, replicate: searchReplicate }
  const failures: unknown[] = []
  const found: FoundModel[] = []
  for (const [provider, search] of Object.entries(searches))
    try {
      found.push(...(await search(ctx, query)))
    } catch (error) {
      if (!(error instanceof RushesError)) throw error
      failures.push(error)
      ctx.out.warn(`${PROVIDERS[provider]?.title} was not searched: ${error.message}`)
    }
  if (failures.length === Object.keys(searches).length) throw failures[0]
  if (found.length === 0) ctx.out.note(`No image or video model was found for "${printable(query)}".`)
  printList(ctx.out, found, {
    header: ['NAME', 'KIND', 'PRICE', 'RUNS', 'DESCRIPTION'],
    expendable: ['DESCRIPTION', 'RUNS'],
    cells: ({ name, kind = '', price, runs, description }) => [
      ...[name, kind, price === undefined ? '' : `${price.amount} ${price.currency}/${price.unit}`],
      ...[runs === undefined ? '' : String(runs), description],
    ],
    json: ({ name, kind = null, price, runs = null, description }) => ({
      ...{ name, kind, runs, description },
      price: price ? { amount: price.amount, unit: price.unit, currency: price.currency } : null,
    }),
  })
  if (ctx.out.stdoutIsTerminal && found[0] !== undefined)
    ctx.out.note(`Then: \`rushes models import ${found[0].name}\``)
  return EXIT.ok
}

const textOf = (value: unknown, maxLength = 100): string =>
  typeof value === 'string' ? shortened(printable(value), maxLength) : ''

async function searchFal(ctx: Context, query: string): Promise<readonly FoundModel[]> {
  const url = new URL(`${PROVIDERS.fal?.api}/models`)
  url.searchParams.set('q', query)
  url.searchParams.set('limit', String(2 * MAX_PER_PROVIDER))
  const value = await getJson(ctx, url)
  const entries = isObject(value) && Array.isArray(value.models) ? value.models.filter(isObject) : []
  const models = entries.flatMap(({ endpoint_id: id, metadata }) => {
    const { category, status, description, display_name: title } = isObject(metadata) ? metadata : {}
    const kind = typeof category === 'string' ? kindOfCategory(category) : undefined
    if (typeof id !== 'string' || kind === 'other' || status === 'deprecated' || status === 'inactive')
      return []
    return [{ id: printable(id), kind, description: textOf(description) || textOf(title) }]
  })
  const shown = models.slice(0, MAX_PER_PROVIDER)
  const prices = await fetchFalPrices(
    ctx,
    shown.map(({ id }) => id),
  ).catch((error) => {
    if (!(error instanceof RushesError)) throw error
    return new Map<string, UnitPrice>()
  })
  return shown.map(({ id, ...others }) => ({
    ...{ name: `fal:${id}`, price: prices.get(id), runs: undefined },
    ...others,
  }))
}

async function searchReplicate(ctx: Context, query: string): Promise<readonly FoundModel[]> {
  const { api, keyVariable } = PROVIDERS.replicate as Provider
  if (keyOf(ctx.env, PROVIDERS.replicate as Provider) === undefined)
    throw new RushesError('no_api_key', `set ${keyVariable} to your API token.`)
  const url = new URL(`${api}/search`)
  url.searchParams.set('query', query)
  const value = await getJson(ctx, url)
  const lists = isObject(value) ? [value.models, value.results] : []
  const entries = lists.find((list) => Array.isArray(list)) as readonly unknown[] | undefined
  const models = (entries ?? []).flatMap((entry): readonly FoundModel[] => {
    const model = isObject(entry) && isObject(entry.model) ? entry.model : isObject(entry) ? entry : {}
    const { owner, name, run_count: runs, description } = model
    if (typeof owner !== 'string' || typeof name !== 'string') return []
    const published = readPublished(model, {
      provider: 'replicate',
      model: `${owner}/${name}`,
      version: undefined,
    })
    const kind = published && kindOf(published)
    if (kind === 'other') return []
    return [
      {
        ...{ name: printable(`replicate:${owner}/${name}`), kind, price: undefined },
        ...{ runs: typeof runs === 'number' ? runs : undefined, description: textOf(description) },
      },
    ]
  })
  return models.slice(0, MAX_PER_PROVIDER)
}

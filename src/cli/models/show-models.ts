/** Shows models and their parameters as tables and as JSON. */
import { documentJson } from '../../protocol/model-document.js'
import { describeValues, KINDS, type Kind, MODEL_INPUTS, type ModelDocument } from '../../protocol/models.js'
import { amountText, cheapestInput, dearestInput, decimalText, millionthsOf } from '../../protocol/price.js'
import { printable, shortened } from '../../protocol/text.js'
import { defaultText, flagsOf } from '../flags/model-flags.js'
import type { Output } from '../terminal/output.js'
import { printTable } from '../terminal/table.js'
import type { KnownModel } from './known-models.js'
import type { Prices } from './prices.js'

export interface ShownModel {
  readonly document: ModelDocument
  readonly source: KnownModel['source'] | 'built-in'
  /** Whether `rushes run <kind>` uses it without `--model`. */
  readonly isDefault: boolean
}

export const schemaOfKind = (kind: Kind) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...MODEL_INPUTS[kind],
})

const cell = (text: string, maxLength = 200): string => shortened(printable(text), maxLength)

/** The document with its effective price, and where that comes from. */
export function pricedJson(document: ModelDocument, prices: Prices) {
  const { price = null, source = null, currency = null } = prices.find(document) ?? {}
  return { ...documentJson(document), price, price_source: source, currency }
}

export async function printModels(out: Output, models: readonly ShownModel[], prices: Prices): Promise<void> {
  if (out.mode.json) {
    const schemas = Object.fromEntries(KINDS.map((kind) => [kind, schemaOfKind(kind)]))
    const documents = models.map(({ document, source, isDefault }) => ({
      ...pricedJson(document, prices),
      default: isDefault,
      source,
    }))
    out.json({ ...schemas, models: documents }, out.stdoutIsTerminal ? 2 : undefined)
    return
  }
  const rows = models.map(({ document, source, isDefault }) => [
    document.name,
    document.kind,
    priceText(document, prices),
    source,
    isDefault ? 'default' : '',
  ])
  await printTable(out, ['NAME', 'KIND', 'PRICE', 'SOURCE', 'DEFAULT'], rows)
}

/** Rows of parameters, and one of the price. `title`: the model or kind, in the first column. `prices`: not for a kind. */
export async function printParameters(
  out: Output,
  title: string,
  document: ModelDocument,
  prices?: Prices,
): Promise<void> {
  const { input } = document
  const price = prices?.find(document)?.price
  const flags = flagsOf(input)
  const rows = Object.entries(input.properties).map(([name, schema]) => [
    title,
    flags.get(name) ?? `input.${name}`,
    input.required.includes(name) ? 'required' : 'optional',
    cell(describeValues(schema, ' ').replace(/^a /, '')),
    cell(`${schema.description}${defaultText(schema)}${flags.has(name) ? '' : ' (set with --input)'}`.trim()),
  ])
  const factors = Object.entries(price?.factors ?? {}).flatMap(([name, byValue]) =>
    Object.entries(byValue).map(([value, factor]) => `${name} ${value}: ×${factor}`),
  )
  const priceRow = [title, 'price', '', prices ? priceText(document, prices) : '', cell(factors.join(', '))]
  await printTable(
    out,
    ['MODEL', 'FLAG', 'REQUIRED', 'VALUES', 'DESCRIPTION'],
    price === undefined ? rows : [...rows, priceRow],
    { optional: ['REQUIRED'] },
  )
}

/** The lowest and the highest price of a run: `1–2 credits`. Empty if the price is not known. */
function priceText(document: ModelDocument, prices: Prices): string {
  const found = prices.find(document)
  if (found === undefined) return ''
  const { input } = document
  const { price, source, currency } = found
  const [low = 0, high = 0] = [cheapestInput, dearestInput].map((extreme) =>
    millionthsOf({ input, price }, extreme(price, input)),
  )
  const amount =
    low === high ? amountText(low, currency) : `${decimalText(low)}–${decimalText(high)} ${currency}`
  return source === 'config' ? `${amount} (config)` : amount
}

/** The price of a run by the document of its model. */
import type { ModelDocument, ModelInput } from './models.js'

const UNIT = 1_000_000n
const inUnits = (amount: number): bigint => BigInt(Math.round(amount * Number(UNIT)))

/**
 * Returns the price of a run, exact to six decimals (rounded up): `run` times the factors of the values that are sent,
 * or of the defaults of the document. Undefined if the document has no price.
 */
export function priceOf(
  { price, input: { properties } }: ModelDocument,
  input: ModelInput,
): number | undefined {
  if (price === undefined) return undefined
  let amount = inUnits(price.run)
  let scale = 1n
  for (const [name, byValue] of Object.entries(price.factors)) {
    const value = Object.hasOwn(input, name) ? input[name] : defaultOf(properties[name])
    // A map or a list has no factor. A map of an input may also have its own `toString`.
    if (typeof value === 'object' || !Object.hasOwn(byValue, String(value))) continue
    amount *= inUnits(byValue[String(value)] ?? 1)
    scale *= UNIT
  }
  return Number((amount + scale - 1n) / scale) / Number(UNIT)
}

const defaultOf = (schema: object | undefined): unknown =>
  schema !== undefined && 'default' in schema ? schema.default : undefined

/** Returns the defaults of a document: the values that the local service uses for parameters that are left out. */
export const defaultsOf = ({ input }: Pick<ModelDocument, 'input'>): ModelInput =>
  Object.fromEntries(
    Object.entries(input.properties).flatMap(([name, schema]) => {
      const value = defaultOf(schema)
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** The parameters of a model as arguments of a tool. Pure. */
import { writeJson } from '../../protocol/json.js'
import type { ModelSchema, ParameterSchema } from '../../protocol/models.js'
import { printable, shortened } from '../../protocol/text.js'
import type { JsonSchema } from './tool.js'

/** Ways to name an image in `image_urls`. */
export const IMAGES =
  'Each entry is an http(s) URL, a data: URL, the path of an image file relative to the folder of the server, ' +
  'or run:<id> for an output of an earlier run (run:<id>#2 for its second output)'

/** Returns the parameters of a model, except those whose names the tool itself uses. */
export function parametersFor(
  { properties }: ModelSchema,
  used: readonly string[],
): Readonly<Record<string, JsonSchema>> {
  const own = Object.entries(properties).filter(([name]) => !used.includes(name))
  return Object.fromEntries(own.map(([name, schema]) => [name, argumentOf(schema)]))
}

/** Longer lists of values are left out, since every session of an agent reads all tools. A create checks them. */
const MAX_KEYWORD = 1_000
const KEYWORDS: readonly string[] = 'type enum minimum maximum maxLength items maxItems default'.split(' ')

/** Keeps only known keywords: a document may come from a service, and clients use these schemas. */
function argumentOf(schema: ParameterSchema): JsonSchema {
  const written = shortened(printable(schema.description))
  const description =
    schema.type === 'array'
      ? [written, IMAGES].filter(Boolean).join('. ')
      : schema.type === 'other'
        ? [written, 'JSON, see list_models'].filter(Boolean).join('. ')
        : written
  const known = Object.entries(schema).filter(
    ([name, value]) =>
      KEYWORDS.includes(name) && schema.type !== 'other' && writeJson(value).length <= MAX_KEYWORD,
  )
  return {
    ...Object.fromEntries(known.map(([name, value]) => [name, asNumbers(value)])),
    ...(schema.type === 'array' && { items: { type: 'string' } }),
    description,
  }
}

/** Clients parse the schemas with `JSON.parse`: a bound of 64 bits is rounded there in any case. */
const asNumbers = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(asNumbers) : typeof value === 'bigint' ? Number(value) : value

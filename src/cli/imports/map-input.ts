/** Turns the input schema that a provider publishes into the input of a model's document. Pure. */
import { RushesError } from '../../errors.js'
import { IMAGE_URLS, mediaOfParameter, pictureAmong } from '../../protocol/media-parameters.js'
import { MAX_PROPERTIES, readModelDocument } from '../../protocol/model-document.js'
import { isObject } from '../../protocol/parse.js'
import { percentDecoded, shortened } from '../../protocol/text.js'
import type { Json } from './published.js'

export interface MappedInput {
  /** A whole schema, `type: object`. */
  readonly input: Json
  /** The provider's field for `image_urls`: a name, or a list of one name for a field with several images. */
  readonly references: string | readonly [string] | undefined
  /** Fields that every request has. */
  readonly fixed: Json
  readonly warnings: readonly string[]
}

/** Parameters that set how many outputs a run makes, each of which is charged. */
const OUTPUT_COUNT = /^(num|number_of)_(images|outputs|videos)$/

/** `root`: the document that `$ref` points into. Throws `bad_response` for a schema that is too large. */
export function mapInput(schema: unknown, root: unknown): MappedInput {
  const resolve = resolverIn(root)
  const published = resolve(schema)
  const properties = isObject(published.properties) ? published.properties : {}
  const all = Object.entries(properties)
    .map(([name, each]) => [name, resolve(each)] as const)
    .toSorted(([, one], [, other]) => orderOf(one) - orderOf(other))
  const picture = pictureAmong(all.map(([name, each]) => [name, mediaOfParameter(name, each)]))
  const warnings: string[] = []
  const fixed: Record<string, unknown> = {}
  const mapped: Record<string, Json> = {}
  const required: string[] = []
  const left: string[] = []
  const room = MAX_PROPERTIES - listOf(published.required).length
  for (const [name, property] of all) {
    const { type, deprecated, default: standard } = property
    // The author's example of a prompt is not worth a run.
    const isOptional = standard !== undefined && name !== 'prompt'
    const isRequired = listOf(published.required).includes(name) && !isOptional
    // Lip-sync models of fal have a choice of that name.
    if (name === 'sync_mode' && type === 'boolean') fixed[name] = false
    else if (OUTPUT_COUNT.test(name) && type === 'integer')
      fixed[name] = Math.max(1, Number(property.minimum ?? 1))
    else if (isSecret(name, property)) warnings.push(`${name} is left out: it is a secret`)
    else if ((/^webhook/.test(name) || deprecated === true) && !isRequired) continue
    else if (name === picture || name !== IMAGE_URLS) {
      const target = name === picture ? IMAGE_URLS : name
      const whole = name === picture ? imagesProperty(property) : mapProperty(name, property)
      const kept = withoutProblems(target, whole, (problem) => warnings.push(`${name}: ${problem}`))
      if (kept === undefined) continue
      if (!isRequired && Object.keys(mapped).length - required.length >= room) {
        left.push(name)
        continue
      }
      mapped[target] = kept
      if (isRequired) required.push(target)
    }
  }
  if (left.length > 0)
    warnings.push(
      `left out, because a model file has at most ${MAX_PROPERTIES} parameters: ${left.join(', ')}`,
    )
  const isList = all.some(([name, { type }]) => name === picture && type === 'array')
  return {
    input: { type: 'object', ...(required.length > 0 && { required }), properties: mapped },
    references: picture !== undefined && isList ? [picture] : picture,
    fixed,
    warnings: warnings.map((each) => shortened(each, 300)),
  }
}

/** Replicate sorts the properties by their names, and numbers them. */
const orderOf = ({ 'x-order': order }: Json): number => (typeof order === 'number' ? order : 0)

const MAX_REFERENCE_DEPTH = 5
/** Far more than a model has. A schema that refers to itself several times would not end. */
const MAX_SCHEMAS = 10_000

/** Returns a function that gives a schema without `$ref`, `allOf`, `anyOf`, `oneOf` and null. The keywords beside them win. */
function resolverIn(root: unknown): (schema: unknown) => Json {
  let left = MAX_SCHEMAS
  return function resolve(schema: unknown, depth = 0): Json {
    if (left-- === 0) throw new RushesError('bad_response', 'The schema of the model is too large.')
    if (!isObject(schema) || depth > MAX_REFERENCE_DEPTH) return {}
    const { $ref, allOf, anyOf, oneOf, nullable: _, ...own } = schema
    const inner = (each: unknown) => resolve(each, depth + 1)
    const parts = [...(typeof $ref === 'string' ? [valueAt(root, $ref)] : []), ...listOf(allOf)].map(inner)
    const variants = [...listOf(anyOf), ...listOf(oneOf)].map(inner).filter(({ type }) => type !== 'null')
    const merged: Json = Object.assign({}, ...parts, unionOf(variants), own)
    const { type, enum: values, ...others } = merged
    const types = Array.isArray(type) ? type.filter((each) => each !== 'null') : [type ?? typeOf(merged)]
    return {
      ...others,
      ...(types.length === 1 && types[0] !== undefined && { type: types[0] }),
      ...(Array.isArray(values) && { enum: values.filter((each) => each !== null && each !== '') }),
      ...(isObject(own.items) && { items: inner(own.items) }),
    }
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Resolves a reference into the same document: `#/components/schemas/ImageSize`. */
const valueAt = (root: unknown, reference: string): unknown =>
  reference
    .split('/')
    .slice(1)
    .reduce<unknown>((at, step) => {
      const key = percentDecoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
      return isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
    }, root)

/** The type of a schema that only lists its values or its properties. */
function typeOf({ enum: values, properties }: Json): string | undefined {
  if (isObject(properties)) return 'object'
  const [first] = listOf(values)
  return first === undefined ? undefined : Number.isInteger(first) ? 'integer' : typeof first
}

/** Joins the variants of a union into one schema. Returns one without a type if they have nothing in common. */
function unionOf(variants: readonly Json[]): Json {
  const [first = {}, second] = variants
  if (second === undefined) return first
  if (variants.some(({ type }) => type !== first.type)) return {}
  const isListed = variants.every((each) => Array.isArray(each.enum))
  return { type: first.type, ...(isListed && { enum: variants.flatMap((each) => listOf(each.enum)) }) }
}

/** A value of it would stand in the journal, and in the database of the service. */
const isSecret = (name: string, { type, format, writeOnly, ...others }: Json): boolean =>
  format === 'password' ||
  writeOnly === true ||
  !!others['x-cog-secret'] ||
  (type === 'string' && /(^|_)(token|api_?key|secret|password)$/i.test(name))

const imagesProperty = (property: Json): Json => ({
  type: 'array',
  ...describe(property),
  items: { type: 'string' },
  ...(property.type === 'array' ? pick(property, ['maxItems']) : { maxItems: 1 }),
})

const MAX_DESCRIPTION = 500

function describe({ description, title }: Json): Json {
  const about = [description, title].find((each) => typeof each === 'string' && each !== 'An enumeration.')
  return about === undefined ? {} : { description: shortened(String(about), MAX_DESCRIPTION) }
}

const pick = (schema: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap((name) => (schema[name] == null ? [] : [[name, schema[name]]])))

/** What is neither a value nor a list of texts can only be set with `--input`, and in manifests. */
function mapProperty(name: string, schema: Json): Json {
  const { type, items } = schema
  const about = describe(schema)
  const standard = name === 'prompt' ? {} : pick(schema, ['default'])
  const media = mediaOfParameter(name, schema)
  const isTexts = type === 'array' && isObject(items) && items.type === 'string'
  if (!isTexts && !SIMPLE.includes(type)) return { ...pick(schema, ['type']), ...about }
  return {
    ...pick(schema, ['type', 'enum', 'minimum', 'maximum', 'maxLength', 'maxItems']),
    ...about,
    ...(media && { media }),
    ...(isTexts && { items: { type: 'string', ...pick(items, ['enum']) } }),
    ...standard,
  }
}

const SIMPLE: readonly unknown[] = ['string', 'boolean', 'integer', 'number']

/** Drops keywords that a document cannot have, such as a default outside of the values. Undefined: the property itself. */
function withoutProblems(name: string, property: Json, warn: (problem: string) => void): Json | undefined {
  const problems: (readonly [keyword: unknown, message: string])[] = []
  const input = { type: 'object', properties: { [name]: property } }
  readModelDocument({ name: 'a/b', kind: 'image', input }, (path, message) =>
    problems.push([path[3], message]),
  )
  const [first] = problems
  if (first === undefined) return property
  const [keyword, message] = first
  warn(`${keyword === undefined ? '' : `${keyword} `}left out: ${message}`)
  if (typeof keyword !== 'string') return undefined
  const { [keyword]: _, ...kept } = property
  return withoutProblems(name, kept, warn)
}

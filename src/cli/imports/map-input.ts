/** Turns the input schema that a provider publishes into the input of a model's document. Pure. */
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

/** `root`: the document that `$ref` points into. */
export function mapInput(schema: unknown, root: unknown): MappedInput {
  const published = resolve(schema, root)
  const all = inOrder(published, root)
  const picture = pictureAmong(all.map(([name, each]) => [name, mediaOfParameter(name, each)]))
  const warnings: string[] = []
  const fixed: Record<string, unknown> = {}
  const properties = new Map<string, Json>()
  const required: string[] = []
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
    else if (/^webhook/.test(name) || deprecated === true) {
      if (isRequired) warnings.push(`${name} is left out, although it is required: it is deprecated`)
    } else if (name === picture || name !== IMAGE_URLS) {
      const target = name === picture ? IMAGE_URLS : name
      const mapped = name === picture ? imagesProperty(property) : mapProperty(name, property, root)
      const kept = withoutProblems(target, mapped, (problem) => warnings.push(`${name}: ${problem}`))
      if (kept === undefined) continue
      properties.set(target, kept)
      if (isRequired) required.push(target)
    }
  }
  const dropped = [...properties.keys()]
    .filter((name) => !required.includes(name))
    .slice(MAX_PROPERTIES - required.length)
  for (const name of dropped) properties.delete(name)
  if (dropped.length > 0)
    warnings.push(
      `A model file has room for ${properties.size} of these parameters. Left out: ${dropped.join(', ')}`,
    )
  const isList = all.some(([name, { type }]) => name === picture && type === 'array')
  return {
    input: {
      type: 'object',
      ...(required.length > 0 && { required }),
      properties: Object.fromEntries(properties),
    },
    references: picture !== undefined && isList ? [picture] : picture,
    fixed,
    warnings: warnings.map((each) => shortened(each, 300)),
  }
}

const MAX_REFERENCE_DEPTH = 10

/** Returns a schema without `$ref`, `allOf`, `anyOf`, `oneOf` and null. The keywords beside them win. */
function resolve(schema: unknown, root: unknown, depth = 0): Json {
  if (!isObject(schema) || depth > MAX_REFERENCE_DEPTH) return {}
  const { $ref, allOf, anyOf, oneOf, nullable: _, ...own } = schema
  const inner = (each: unknown) => resolve(each, root, depth + 1)
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
  const allAre = (...types: readonly unknown[]) => variants.every(({ type }) => types.includes(type))
  const list = variants.find(({ items }) => isObject(items) && items.type === 'string')
  if (list !== undefined && allAre('string', 'array')) return list
  if (!allAre(first.type)) return allAre('integer', 'number') ? { type: 'number' } : {}
  const isListed = variants.every((each) => Array.isArray(each.enum))
  return { type: first.type, ...(isListed && { enum: variants.flatMap((each) => listOf(each.enum)) }) }
}

/** The properties, resolved, in the order that the provider shows: listed, numbered, or the required ones first. */
function inOrder(published: Json, root: unknown): readonly (readonly [string, Json])[] {
  const properties = isObject(published.properties) ? published.properties : {}
  const all = Object.entries(properties).map(([name, each]) => [name, resolve(each, root)] as const)
  const listed = listOf(published['x-fal-order-properties'])
  const required = listOf(published.required)
  const placeOf = ([name, each]: readonly [string, Json]): number => {
    if (listed.length > 0) return listed.includes(name) ? listed.indexOf(name) : listed.length
    return typeof each['x-order'] === 'number' ? each['x-order'] : required.includes(name) ? -1 : all.length
  }
  return all.toSorted((one, other) => placeOf(one) - placeOf(other))
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

/** Names `fields`, those of an object, which can only be set with `--input` and in manifests. */
function describe({ description, title }: Json, fields: readonly string[] = []): Json {
  const about = [description, title].find((each) => typeof each === 'string' && each !== 'An enumeration.')
  const words = [about, fields.length > 0 && `Fields: ${fields.join(', ')}.`].filter(Boolean).join(' ')
  return words === '' ? {} : { description: shortened(words, MAX_DESCRIPTION) }
}

const pick = (schema: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap((name) => (schema[name] == null ? [] : [[name, schema[name]]])))

function mapProperty(name: string, schema: Json, root: unknown): Json {
  const { type, items } = schema
  const inner = type === 'array' && isObject(items) ? items : schema
  const fields = isObject(inner.properties) ? inner.properties : undefined
  const about = describe(schema, Object.keys(fields ?? {}))
  const standard = name === 'prompt' ? {} : pick(schema, ['default'])
  const media = mediaOfParameter(name, schema)
  if (media !== undefined) {
    const list = type === 'array' ? { items: { type: 'string' }, ...pick(schema, ['maxItems']) } : {}
    return { type, ...about, media, ...list, ...standard }
  }
  if (type === 'array' && inner.type === 'string') {
    const entries = { type: 'string', ...pick(inner, ['enum']) }
    return { type, ...about, items: entries, ...pick(schema, ['maxItems']), ...standard }
  }
  if (fields !== undefined)
    return type === 'array'
      ? { type, ...about, items: objectOf(inner, root) }
      : { ...objectOf(inner, root), ...about }
  const isSimple = SIMPLE.includes(type)
  return {
    ...pick(schema, isSimple ? ['type', 'enum', 'minimum', 'maximum', 'maxLength'] : ['type']),
    ...about,
    ...(isSimple && standard),
  }
}

const SIMPLE: readonly unknown[] = ['string', 'boolean', 'integer', 'number']

/** An object can only be set with `--input`, and in manifests. Of its fields, only the types and the media are known. */
function objectOf({ properties }: Json, root: unknown): Json {
  const fields = Object.entries(isObject(properties) ? properties : {}).map(([field, published]) => {
    const schema = resolve(published, root)
    const isMedia = mediaOfParameter(field, schema) !== undefined
    return [field, isMedia ? mapProperty(field, schema, root) : pick(schema, ['type'])]
  })
  return { type: 'object', properties: Object.fromEntries(fields) }
}

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

/** Turns the input schema that a provider publishes into the input of a model's document. Pure. */
import { writeJson } from '../../protocol/json.js'
import { IMAGE_URLS, mediaOfParameter, pictureAmong } from '../../protocol/media-parameters.js'
import { MAX_DOCUMENT_BYTES, MAX_PROPERTIES, readModelDocument } from '../../protocol/model-document.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'

type Json = Readonly<Record<string, unknown>>

export interface MappedInput {
  /** A whole schema, `type: object`. */
  readonly input: Json
  /** The provider's field for `image_urls`: a name, or a list of one name for a field with several images. */
  readonly references: string | readonly [string] | undefined
  /** Fields that every request has. */
  readonly fixed: Json
  readonly warnings: readonly string[]
}

/** Parameters that set how many outputs a run makes, each of which is charged. A maximum stays a flag; the others are fixed. */
const OUTPUT_COUNT = /^(num|max|number_of)_(images|outputs|videos)$/

/** `root`: the document that `$ref` points into. */
export function mapInput(schema: unknown, root: unknown): MappedInput {
  const published = resolve(schema, root)
  const warnings: string[] = []
  const fixed: Record<string, unknown> = {}
  const properties = new Map<string, Json>()
  const required = new Set<string>()
  const all = inOrder(published, root)
  const picture = pictureAmong(all.map(([name, each]) => [name, mediaOfParameter(name, each)]))
  const isList = all.some(([name, { type }]) => name === picture && type === 'array')
  for (const [name, property] of all) {
    // The author's example of a prompt is not worth a run.
    const isOptional = property.default !== undefined && name !== 'prompt'
    const isRequired = listOf(published.required).includes(name) && !isOptional
    // Lip-sync models of fal have a choice of that name.
    if (name === 'sync_mode' && property.type === 'boolean') fixed[name] = false
    else if (OUTPUT_COUNT.test(name) && !name.startsWith('max_') && property.type === 'integer')
      fixed[name] = Math.max(1, Number(property.minimum ?? 1))
    else if (isSecret(name, property)) warnings.push(`${name} is left out: it is a secret`)
    else if (isOmitted(name, property)) {
      if (isRequired) warnings.push(`${name} is left out, although it is required: it is deprecated`)
    } else if (name === picture || name !== IMAGE_URLS) {
      const target = name === picture ? IMAGE_URLS : name
      const mapped = target === IMAGE_URLS ? imagesProperty(property) : mapProperty(name, property)
      const kept = withoutProblems(target, mapped, (problem) => warnings.push(`${name}: ${problem}`))
      if (kept === undefined) continue
      properties.set(target, kept)
      if (isRequired) required.add(target)
    }
  }
  const names = withinLimits(properties, required, warnings)
  return {
    input: {
      type: 'object',
      ...(required.size > 0 && { required: names.filter((name) => required.has(name)) }),
      properties: Object.fromEntries(names.map((name) => [name, properties.get(name)])),
    },
    references: names.includes(IMAGE_URLS)
      ? picture !== undefined && isList
        ? [picture]
        : picture
      : undefined,
    fixed,
    warnings: warnings.map((each) => shortened(printable(each), 300)),
  }
}

const MAX_REFERENCE_DEPTH = 5

/** Returns a schema without `$ref`, `allOf`, `anyOf`, `oneOf` and null. The keywords beside them win. */
function resolve(schema: unknown, root: unknown, depth = 0): Json {
  if (!isObject(schema) || depth > 2 * MAX_REFERENCE_DEPTH) return {}
  const { $ref, allOf, anyOf, oneOf, nullable: _, ...own } = schema
  const inner = (each: unknown) => resolve(each, root, depth + 1)
  const parts = [...(typeof $ref === 'string' ? [valueAt(root, $ref)] : []), ...listOf(allOf)].map(inner)
  const variants = [...listOf(anyOf), ...listOf(oneOf)].map(inner).filter(({ type }) => type !== 'null')
  const merged: Json = Object.assign({}, ...parts, unionOf(variants), own)
  const types = listOf(merged.type).filter((type) => type !== 'null')
  const { type: listed, ...others } = merged
  const values = Array.isArray(merged.enum)
    ? { enum: merged.enum.filter((each) => each !== null && each !== '') }
    : {}
  const type = Array.isArray(listed)
    ? types.length === 1
      ? types[0]
      : undefined
    : (listed ?? typeOf(merged))
  const items = isObject(own.items) ? { items: inner(own.items) } : {}
  return { ...others, ...(type !== undefined && { type }), ...values, ...items }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Resolves a reference into the same document: `#/components/schemas/ImageSize`. */
const valueAt = (root: unknown, reference: string): unknown =>
  reference
    .split('/')
    .slice(1)
    .reduce<unknown>((at, step) => {
      const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
      return isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
    }, root)

/** The type of a schema that only lists its values or its properties. */
function typeOf({ enum: values, const: only, properties }: Json): string | undefined {
  if (isObject(properties)) return 'object'
  const [first = only] = listOf(values)
  if (first === undefined) return undefined
  return typeof first === 'string' ? 'string' : Number.isInteger(first) ? 'integer' : typeof first
}

/** Joins the variants of a union into one schema. Returns one without a type if they have nothing in common. */
function unionOf(variants: readonly Json[]): Json {
  const [first = {}] = variants
  if (variants.length <= 1) return first
  const types = new Set(variants.map(({ type }) => type))
  const values = variants.flatMap((each) =>
    listOf(each.enum ?? (each.const === undefined ? [] : [each.const])),
  )
  if (types.size === 1 && types.has('string'))
    // Any text is accepted: the values of the others are examples.
    return variants.every((each) => each.enum ?? each.const)
      ? { type: 'string', enum: [...new Set(values)] }
      : { type: 'string', examples: values }
  if (types.size === 1 && (types.has('integer') || types.has('number')) && values.length > 0)
    return { type: first.type, enum: [...new Set(values)] }
  if ([...types].every((type) => type === 'integer' || type === 'number')) return { type: 'number' }
  const text = variants.find(({ type }) => type === 'string')
  const object = variants.find(({ type }) => type === 'object')
  if (text !== undefined && object !== undefined && variants.length === 2)
    return { ...text, orObject: object }
  const list = variants.find(
    ({ type, items }) => type === 'array' && isObject(items) && items.type === 'string',
  )
  if (list !== undefined && [...types].every((type) => type === 'array' || type === 'string')) return list
  return { anyOf: [...types].filter((type) => type !== undefined).map((type) => ({ type })) }
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

const isOmitted = (name: string, { deprecated }: Json): boolean =>
  /^webhook/.test(name) || deprecated === true

/** A value of it would stand in the journal, and in the database of the service. */
const isSecret = (name: string, { type, format, writeOnly, ...others }: Json): boolean =>
  format === 'password' ||
  writeOnly === true ||
  !!others['x-cog-secret'] ||
  (type === 'string' && /(^|_)(token|api_?key|secret|password)$/i.test(name))

const imagesProperty = (property: Json): Json => ({
  type: 'array',
  ...described(descriptionOf(property)),
  items: { type: 'string' },
  ...(property.type === 'array' ? pick(property, ['maxItems']) : { maxItems: 1 }),
})

const described = (description: string): Json => (description === '' ? {} : { description })

const pick = (schema: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap((name) => (schema[name] == null ? [] : [[name, schema[name]]])))

function mapProperty(name: string, schema: Json): Json {
  const { type, const: only } = schema
  const isPrompt = name === 'prompt'
  const inner = type === 'array' && isObject(schema.items) ? schema.items : schema
  const fields = isObject(inner.properties) ? Object.keys(inner.properties) : []
  const texts = [
    descriptionOf(schema),
    isPrompt && typeof schema.default === 'string' && `Example: ${schema.default}`,
    schema.orObject === undefined && fields.length > 0 && `Fields: ${fields.join(', ')}.`,
  ]
  const about = described(shortened(printable(texts.filter(Boolean).join(' ')), MAX_DESCRIPTION))
  const standard = isPrompt ? {} : pick(schema, ['default'])
  const values = only === undefined ? pick(schema, ['enum']) : { enum: [only] }
  const media = mediaOfParameter(name, schema)
  if (media !== undefined) {
    const items = type === 'array' ? { items: { type: 'string' }, ...pick(schema, ['maxItems']) } : {}
    return { type, ...about, media, ...items, ...standard }
  }
  if (type === 'string' && isObject(schema.orObject))
    return { anyOf: [{ type, ...values }, plainObject(schema.orObject)], ...about, ...standard }
  if (type === 'string') return { type, ...about, ...values, ...pick(schema, ['maxLength']), ...standard }
  if (type === 'boolean') return { type, ...about, ...standard }
  if (type === 'integer' || type === 'number')
    return { type, ...about, ...values, ...boundsOf(schema), ...standard }
  if (type === 'array' && inner.type === 'string')
    return {
      ...{ type, ...about, items: { type: 'string', ...pick(inner, ['enum']) } },
      ...pick(schema, ['maxItems']),
      ...standard,
    }
  // Only `--input` and manifests can set it.
  if (type === 'object') return { ...plainObject(schema), ...about }
  return {
    ...(typeof type === 'string' && { type }),
    ...pick(schema, ['anyOf']),
    ...about,
    ...(inner !== schema && isObject(inner.properties) && { items: plainObject(inner) }),
  }
}

/** An object with the names and types of its fields, which are checked. */
const plainObject = ({ properties, required }: Json): Json => ({
  type: 'object',
  ...(isObject(properties) && {
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, each]) => [name, isObject(each) ? pick(each, ['type']) : {}]),
    ),
    ...pick({ required }, ['required']),
  }),
})

/** Both forms of exclusive bounds: a number, or `true` beside the bound. */
function boundsOf({ type, minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below }: Json): Json {
  const bound = (own: unknown, exclusive: unknown, step: number) => {
    const limit = typeof exclusive === 'number' ? exclusive : own
    const isExclusive = typeof exclusive === 'number' || exclusive === true
    return isExclusive && type === 'integer' && typeof limit === 'number' ? Math.floor(limit) + step : limit
  }
  return pick({ minimum: bound(minimum, above, 1), maximum: bound(maximum, below, -1) }, [
    'minimum',
    'maximum',
  ])
}

const MAX_DESCRIPTION = 500

function descriptionOf({ type, description, title, examples, enum: values }: Json): string {
  const text = typeof description === 'string' && description !== 'An enumeration.' ? description : title
  const shown = listOf(examples).filter((each) => typeof each === 'string' && each.length <= 60)
  const hasExamples = type === 'string' && values === undefined && shown.length > 1
  const words = [typeof text === 'string' ? text : '', hasExamples ? `Examples: ${shown.join(', ')}.` : '']
  return shortened(printable(words.join(' ').trim()), MAX_DESCRIPTION)
}

/** Drops keywords that a document cannot have, such as a default outside of the values. Undefined: the property itself. */
function withoutProblems(name: string, property: Json, warn: (problem: string) => void): Json | undefined {
  let kept: Json | undefined = property
  for (let isValid = false; !isValid && kept !== undefined; ) {
    isValid = true
    const input = { type: 'object', properties: { [name]: kept } }
    readModelDocument({ name: 'a/b', kind: 'image', input }, (path, message) => {
      if (!isValid) return
      isValid = false
      const keyword = path[3]
      warn(`${keyword === undefined ? '' : `${keyword} `}left out: ${message}`)
      kept = typeof keyword === 'string' ? withoutKey(kept ?? {}, keyword) : undefined
    })
  }
  return kept
}

const withoutKey = ({ ...schema }: Record<string, unknown>, key: string): Json => {
  delete schema[key]
  return schema
}

/** Returns the names that a document has room for: the required ones, then the first. */
function withinLimits(
  properties: ReadonlyMap<string, Json>,
  required: ReadonlySet<string>,
  warnings: string[],
): readonly string[] {
  const byImportance = [...properties.keys()].toSorted(
    (a, b) => Number(required.has(b)) - Number(required.has(a)),
  )
  let bytes = 0
  const fitting = byImportance.slice(0, MAX_PROPERTIES).filter((name) => {
    bytes += Buffer.byteLength(writeJson({ [name]: properties.get(name) }))
    // The rest of the document needs room too.
    return bytes < MAX_DOCUMENT_BYTES - 16_384
  })
  const dropped = byImportance.filter((name) => !fitting.includes(name))
  if (dropped.length > 0)
    warnings.push(
      `A model file has room for ${fitting.length} of these parameters. Left out: ${dropped.join(', ')}`,
    )
  return [...properties.keys()].filter((name) => fitting.includes(name))
}

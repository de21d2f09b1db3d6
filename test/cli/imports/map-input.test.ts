/** The mapping of published schemas to the input of a document, rule by rule; whole schemas are in `test/engines/real-schemas`. */
import { describe, expect, it } from 'vitest'
import { mapInput } from '../../../src/cli/imports/map-input.js'

const ROOT = {
  components: {
    schemas: {
      ratio: { enum: ['1:1', '16:9'], type: 'string', title: 'ratio', description: 'An enumeration.' },
      frames: { enum: [81, 121], type: 'integer' },
      Size: {
        type: 'object',
        properties: { width: { type: 'integer', maximum: 9 }, height: { type: 'integer' } },
      },
      Lora: { type: 'object', properties: { path: { type: 'string' }, scale: { type: 'number' } } },
      Loop: { allOf: [{ $ref: '#/components/schemas/Loop' }] },
      'a/b': { type: 'boolean' },
      '100%': { type: 'boolean' },
    },
  },
}
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Maps a schema with one property. */
function mapped(property: object, { name = 'x', required = false } = {}) {
  const schema = { type: 'object', properties: { [name]: property }, ...(required && { required: [name] }) }
  const { input, ...others } = mapInput(schema, ROOT)
  const { properties, ...rest } = input as {
    properties: Record<string, unknown>
    required?: readonly string[]
  }
  return { properties, ...rest, ...others }
}

describe('a published property', () => {
  it.each<[string, object, object]>([
    [
      'takes the values of allOf, and the keywords beside it win',
      { allOf: [ref('ratio')], default: '1:1', description: 'Shape' },
      { type: 'string', description: 'Shape', enum: ['1:1', '16:9'], default: '1:1' },
    ],
    ['follows a reference', ref('a~1b'), { type: 'boolean' }],
    ['follows a reference that is not encoded', ref('100%'), { type: 'boolean' }],
    ['follows an endless reference to its end', ref('Loop'), {}],
    [
      'loses null in anyOf',
      { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }], title: 'Seed', default: null },
      { type: 'integer', description: 'Seed', minimum: 0 },
    ],
    ['loses nullable', { type: 'string', nullable: true, default: null }, { type: 'string' }],
    ['loses null in a list of types', { type: ['number', 'null'] }, { type: 'number' }],
    [
      'keeps an enum of integers as integers',
      { allOf: [ref('frames')], default: 81 },
      { type: 'integer', enum: [81, 121], default: 81 },
    ],
    [
      'keeps digits as text where they are published as text',
      { type: 'string', enum: ['5', '10'], default: '5' },
      { type: 'string', enum: ['5', '10'], default: '5' },
    ],
    [
      'joins the values of a union of enums',
      {
        anyOf: [
          { enum: ['a', 'b'], type: 'string' },
          { enum: ['c'], type: 'string' },
        ],
      },
      { type: 'string', enum: ['a', 'b', 'c'] },
    ],
    [
      'has no type if its types have nothing in common',
      { anyOf: [{ type: 'boolean' }, { type: 'integer' }] },
      {},
    ],
    [
      'has no type for the items of a nullable list that may be texts or several objects',
      {
        anyOf: [
          { type: 'array', items: { anyOf: [{ type: 'string' }, ref('Size'), ref('Lora')] } },
          { type: 'null' },
        ],
      },
      { type: 'array' },
    ],
    [
      'that is a list of objects says only that it is a list',
      { type: 'array', items: ref('Lora'), default: [], description: 'Adapters.' },
      { type: 'array', description: 'Adapters.' },
    ],
    [
      'that is an object says only that',
      { ...ref('Size'), title: 'Size' },
      { type: 'object', description: 'Size' },
    ],
    [
      'loses patterns and unknown formats',
      { type: 'string', pattern: '(a+)+$', format: 'color', minLength: 3, maxLength: 7 },
      { type: 'string', maxLength: 7 },
    ],
  ])('%s', (_, property, expected) => {
    expect(mapped(property)).toMatchObject({ properties: { x: expected }, warnings: [] })
    expect(mapped(property).properties.x).toEqual(expected)
  })

  it.each<[string, object, string]>([
    [
      'a default outside of the range',
      { type: 'number', maximum: 1, default: 7.5 },
      'x: default left out: must be a number up to 1, not 7.5',
    ],

    [
      'bounds that exclude each other',
      { type: 'integer', minimum: 5, maximum: 1 },
      'x: minimum left out: 5 is greater than the maximum 1',
    ],
  ])('loses %s, with a warning', (_, property, warning) => {
    const { warnings, properties } = mapped(property)
    expect(warnings).toEqual([warning])
    expect(properties.x).toBeDefined()
  })

  it('becomes optional when it has a default', () => {
    expect(mapped({ type: 'string', default: 'a' }, { required: true })).not.toHaveProperty('required')
    expect(mapped({ type: 'string' }, { required: true }).required).toEqual(['x'])
  })

  it.each([
    ['num_images', { type: 'integer', default: 4 }, { num_images: 1 }],
    ['num_outputs', { type: 'integer', minimum: 2 }, { num_outputs: 2 }],
    ['sync_mode', { type: 'boolean' }, { sync_mode: false }],
  ])('%s is fixed', (name, property, fixed) => {
    expect(mapped(property, { name })).toMatchObject({ properties: {}, fixed })
  })

  it.each([
    ['webhook_url', { type: 'string' }],
    ['old', { type: 'string', deprecated: true }],
  ])('%s is left out, unless it is required', (name, property) => {
    expect(mapped(property, { name })).toMatchObject({ properties: {}, fixed: {}, warnings: [] })
    expect(mapped(property, { name, required: true }).required).toEqual([name])
  })

  it.each<[name: string, property: object]>([
    ['key', { type: 'string', 'x-cog-secret': true }],
    ['phrase', { type: 'string', format: 'password' }],
    ...['hf_api_token', 'password'].map((name): [string, object] => [name, { type: 'string' }]),
  ])('%s is left out with a warning, since a value would be kept in clear', (name, property) => {
    expect(mapped(property, { name })).toMatchObject({
      properties: {},
      fixed: {},
      warnings: [`${name} is left out: it is a secret`],
    })
  })

  it.each(['max_tokens', 'token_count', 'keyframes'])('%s is no secret', (name) => {
    expect(mapped({ type: 'integer' }, { name }).properties).toHaveProperty(name)
  })

  it('that is the prompt stays required, although its author has an example as default', () => {
    const prompt = { type: 'string', description: 'What to draw.', default: 'an astronaut' }
    expect(mapped(prompt, { name: 'prompt', required: true })).toMatchObject({
      properties: { prompt: { type: 'string', description: 'What to draw.' } },
      required: ['prompt'],
    })
    expect(mapped(prompt, { name: 'prompt', required: true }).properties.prompt).not.toHaveProperty('default')
  })

  it.each([
    ['end_image_url', { type: 'string' }, 'image'],
    ['lora_weights', { type: 'string', format: 'uri' }, 'file'],
    ['x', { type: 'string', _fal_ui_field: 'video' }, 'video'],
    ['z', { type: 'string', format: 'uri', 'x-cog-accept': 'audio/*,video/*' }, 'audio'],
  ])('%s of %j takes media: %s', (name, property, media) => {
    const schema = { type: 'object', properties: { image_urls: { type: 'string' }, [name]: property } }
    const { input } = mapInput(schema, ROOT)
    expect((input.properties as Record<string, unknown>)[name]).toEqual({
      type: 'string',
      media,
      ...('description' in property && { description: property.description }),
    })
  })

  it('with a name that no document can have is left out, with a warning', () => {
    const { properties, warnings } = mapped({ type: 'string' }, { name: 'a b' })
    expect({ properties, warnings }).toEqual({
      properties: {},
      warnings: ['a b: left out: "a b" is not a property name'],
    })
  })
})

describe('the reference images', () => {
  const uri = { type: 'string', format: 'uri' }
  const url = { type: 'string' }
  const list = { type: 'array', items: uri, maxItems: 3 }
  it.each<[string, Record<string, object>, string | readonly string[] | undefined, readonly string[]]>([
    [
      'are the first field with a picture',
      { mask: uri, image: uri, end_image: uri },
      'image',
      ['mask', 'image_urls', 'end_image'],
    ],
    ['are a list where the field is one', { image_input: list }, ['image_input'], ['image_urls']],
    [
      'are image_urls where that exists',
      { image_url: url, image_urls: list },
      ['image_urls'],
      ['image_url', 'image_urls'],
    ],
    [
      'are known by the accepted type',
      { a: { ...uri, 'x-cog-accept': 'video/*' }, b: { ...uri, 'x-cog-accept': 'image/*' } },
      'b',
      ['a', 'image_urls'],
    ],
    [
      'are not a file of another kind',
      { audio: uri, lora_weights: uri, video: uri },
      undefined,
      ['audio', 'lora_weights', 'video'],
    ],
    ['are not a choice of texts', { image_url: { ...url, enum: ['a'] } }, undefined, ['image_url']],
  ])('%s', (_, properties, field, names) => {
    const { references, input } = mapInput({ type: 'object', properties }, ROOT)
    expect(references).toEqual(field)
    expect(Object.keys(input.properties as object)).toEqual(names)
  })

  it('of a model with one field for a picture are at most one', () => {
    expect(mapped(uri, { name: 'image', required: true })).toMatchObject({
      required: ['image_urls'],
      properties: { image_urls: { type: 'array', items: { type: 'string' }, maxItems: 1 } },
    })
  })
})

describe('the order', () => {
  const namesOf = (schema: object) =>
    Object.keys(mapInput({ type: 'object', ...schema }, ROOT).input.properties as object)
  const text = { type: 'string' }

  it('of the properties is that of the provider, by their numbers if they have some', () => {
    expect(namesOf({ properties: { c: text, a: text, b: text } })).toEqual(['c', 'a', 'b'])
    expect(namesOf({ properties: { a: { ...text, 'x-order': 10 }, b: { ...text, 'x-order': 2 } } })).toEqual([
      'b',
      'a',
    ])
  })
})

it('a model with more parameters than a model file may have keeps those that are required, and the first others', () => {
  const properties = Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`p${at}`, { type: 'string' }]))
  const { input, warnings } = mapInput({ type: 'object', properties, required: ['p69'] }, ROOT)
  const names = Object.keys(input.properties as object)
  expect([names.length, names.at(-1), names.at(-2)]).toEqual([64, 'p69', 'p62'])
  expect(warnings).toEqual([expect.stringMatching(/at most 64 parameters: p63, .*p68$/)])
})

it('a schema that refers to itself many times is refused', () => {
  const schemas = { Loop: { allOf: Array.from({ length: 50 }, () => ref('Loop')) } }
  expect(() => mapInput(ref('Loop'), { components: { schemas } })).toThrow('too large')
})

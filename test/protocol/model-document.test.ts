import { describe, expect, it } from 'vitest'
import { flagsOf } from '../../src/cli/flags/model-flags.js'
import { documentJson, MAX_PROPERTIES, readModelDocument } from '../../src/protocol/model-document.js'
import { builtInSchema, type ModelDocument } from '../../src/protocol/models.js'
import { defaultsOf } from '../../src/protocol/price.js'
import { inputProblems } from '../../src/protocol/validate.js'

function read(value: unknown): { readonly document?: ModelDocument; readonly problems: readonly string[] } {
  const problems: string[] = []
  const document = readModelDocument(value, (path, message) => problems.push(`${path.join('.')}: ${message}`))
  return { ...(document && { document }), problems }
}

function documentOf(value: object): ModelDocument {
  const { document, problems } = read({ name: 'acme/still-2', kind: 'image', ...value })
  expect(problems).toEqual([])
  return document as ModelDocument
}

const SCHEMA = {
  type: 'object',
  description: 'Stills',
  required: ['prompt', 'size'],
  properties: {
    prompt: { type: 'string', description: 'What to draw', maxLength: 5 },
    size: { type: 'string', enum: ['s', 'm'], default: 's' },
    steps: { type: 'integer', minimum: 1, maximum: 50, default: 20 },
    guidance: { type: 'number', minimum: 0 },
    tiled: { type: 'boolean' },
    loras: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    region: { type: 'object', properties: { x: { type: 'integer' } } },
    either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  },
}

describe('a document', () => {
  it('with a whole schema has its properties alone', () => {
    const { input } = documentOf({ input: SCHEMA })
    expect(input.required).toEqual(['prompt', 'size'])
    expect(Object.entries(input.properties).map(([name, { type }]) => `${name} ${type}`)).toEqual([
      'prompt string',
      'size string',
      'steps integer',
      'guidance number',
      'tiled boolean',
      'loras array',
      'region other',
      'either other',
    ])
  })

  it('in the short form adds to the built-in properties of its kind, and takes away from them', () => {
    const { input } = documentOf({
      input: { aspect_ratio: false, seed: { type: 'integer', required: true }, quality: { type: 'string' } },
    })
    const { aspect_ratio: _, ...others } = builtInSchema('image').properties
    expect(Object.keys(input.properties)).toEqual([...Object.keys(others), 'seed'])
    expect(input.required).toEqual(['prompt', 'seed'])
    expect(documentOf({ kind: 'video' }).input).toEqual(builtInSchema('video'))
    expect(input.properties.seed).toEqual({ type: 'integer', description: '' })
  })

  it('keeps a built-in property required that it replaces, unless it says otherwise', () => {
    const input = (required?: boolean) =>
      documentOf({ input: { prompt: { type: 'string', maxLength: 9, required } } }).input
    expect(input().required).toEqual(['prompt'])
    expect(input(false).required).toEqual([])
  })

  it('shows the keywords that it was read with, without its engine', () => {
    const input = { ...SCHEMA, title: 'image' }
    const price = { run: 0.1, factors: { size: { m: 1.5 } } }
    const shown = documentJson(documentOf({ input, price, default: true, engine: { url: 'x' } }))
    expect(shown).toMatchObject({ name: 'acme/still-2', kind: 'image', price, default: true })
    expect(read(shown).document).toEqual(documentOf({ input, price, default: true }))
    expect(shown).not.toHaveProperty('engine')
    const { properties } = shown.input as { properties: Record<string, unknown> }
    expect(properties.region).toEqual(SCHEMA.properties.region)
  })

  it('accepts a text or an object where a property is both, and is shown so', () => {
    const size = {
      anyOf: [
        { type: 'string', enum: ['square', 'wide'] },
        { type: 'object', properties: { width: { type: 'integer' } } },
      ],
      default: 'square',
      description: 'Size',
    }
    const document = documentOf({ input: { size } })
    const { properties } = documentJson(document).input as { properties: Record<string, unknown> }
    expect(properties.size).toEqual(size)
    expect(read(documentJson(document)).document).toEqual(document)
    const problemOf = (value: unknown) =>
      inputProblems(document.input, { prompt: 'x', size: value })[0]?.message
    expect([problemOf('wide'), problemOf({ width: 640 })]).toEqual([undefined, undefined])
    expect(problemOf('huge')).toMatch(/^must be one of square, wide/)
    expect(problemOf(7)).toBeDefined()
    expect(read({ ...image, input: { size: { ...size, default: { width: 1 } } } }).problems).toEqual([
      'input.size.default: must be text',
    ])
  })

  const image = { name: 'acme/still-2', kind: 'image' }
  const NOT_A_NAME = 'name: must be a model name of the form <provider>/<name>'
  const NOT_A_PRICE = 'price.run: must be a number from 0 to 1000000000 with at most six decimals'
  const notValues = (type: string) => `input.x.enum: must be a list of 1 to 1000 values of type ${type}`
  const noFactors = (name: string) =>
    `price.factors.${name}: is a list or a map: only text, numbers and booleans can have factors`
  const property = (schema: unknown) => ({ ...image, input: { x: schema } })
  const many = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, index) => [`p${index}`, { type: 'string' }]),
  )
  it.each<[unknown, string]>([
    [null, ': is not a map'],
    [{ ...image, name: 'acme/\u001b[31m' }, NOT_A_NAME],
    [{ ...image, kind: 'audio' }, 'kind: must be video or image'],
    [{ ...image, default: 1 }, 'default: must be true or false'],
    [
      { ...image, input: { type: 'object', properties: many } },
      `input.properties: has 10000 properties; the limit is ${MAX_PROPERTIES}`,
    ],
    [{ ...image, pad: 'x'.repeat(300_000) }, ': is larger than 256 KiB'],
    [
      JSON.parse('{"name":"a/b","kind":"image","input":{"__proto__":{"type":"string"}}}'),
      'input.__proto__: "__proto__" is not a property name',
    ],
    [{ ...image, input: { prompt: { type: 'integer' } } }, 'input.prompt: must be a string'],
    [{ ...image, input: { image_urls: { type: 'string' } } }, 'input.image_urls: must be a list of strings'],
    [
      { ...image, input: { type: 'object', required: ['x'] } },
      'input.required.0: "x" is not among the properties',
    ],
    [{ ...image, input: { type: 'object', required: 'x' } }, 'input.required: must be a list of strings'],
    [
      { ...image, input: { properties: { x: { type: 'string' } } } },
      'input: needs "type: object" beside "properties"',
    ],
    [
      property({ type: 'int' }),
      'input.x.type: must be one of string, integer, number, boolean, array, object, null',
    ],
    [property({ type: 'integer', required: 'yes' }), 'input.x.required: must be true or false'],
    [
      property({ type: 'string', enum: [5, 10] }),
      `${notValues('string')} (put numbers, true and false in quotes)`,
    ],
    [
      { ...image, input: { hd: { type: 'boolean' } }, price: { run: 1, factors: { hd: { yes: 2 } } } },
      'price.factors.hd.yes: "yes" is not one of true, false',
    ],
    [property({ type: 'integer', enum: [] }), notValues('integer')],
    [property({ type: 'integer', enum: [1, 1.5] }), notValues('integer')],
    [
      property({ type: 'integer', minimum: 50, maximum: 1 }),
      'input.x.minimum: 50 is greater than the maximum 1',
    ],
    [property({ type: 'string', maxLength: -1 }), 'input.x.maxLength: must be a whole number from 0'],
    [
      property({ type: 'integer', maximum: 9, default: 10 }),
      'input.x.default: must be a whole number up to 9, not 10',
    ],
    [{ ...image, price: { run: 0.0000001 } }, NOT_A_PRICE],
    [
      { ...image, price: { run: 1, factors: { fps: { 1: 2 } } } },
      'price.factors.fps: is not a property of the input',
    ],
    [{ ...image, price: { run: 1, factors: { image_urls: { 1: 1.5 } } } }, noFactors('image_urls')],
    [
      { ...image, price: { run: 1, factors: { quality: { best: 2 } } } },
      'price.factors.quality.best: "best" is not one of basic, high',
    ],
    [
      { ...image, input: { steps: { type: 'integer' } }, price: { run: 1, factors: { steps: { '05': 2 } } } },
      'price.factors.steps.05: "05" is not a number in its shortest form',
    ],
  ])('is refused: %#', (value, problem) => {
    const { document, problems } = read(value)
    expect(document).toBeUndefined()
    expect(problems).toContain(problem)
  })

  it('rejects a document that is nested too deeply to be written', () => {
    const deep = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)
    expect(read({ ...image, deep }).problems).toEqual([': is larger than 256 KiB'])
  })

  it('never runs a regular expression', () => {
    const { input } = documentOf({ input: { code: { type: 'string', pattern: '^(a+)+$' } } })
    expect(inputProblems(input, { prompt: 'x', code: `${'a'.repeat(40)}!` })).toEqual([])
  })
})

it.each([
  [['output', 'a_b', 'a-b', 'tiled', 'no_tiled', 'wait'], '--a-b --tiled'],
  [['guidanceScale', 'guidance_scale', 'guidance'], '--guidance-scale --guidance'],
  // commander keeps the values of these under one key.
  [['lora_1', 'lora1', 'lora_2'], '--lora-1 --lora-2'],
  [['show', 'dryRun', 'promptFile', 'noLogo', 'n'], '--n'],
])('the flags of %j are %s: never the name of another flag', (names, flags) => {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'boolean' }]))
  const { input } = documentOf({ input: { type: 'object', properties } })
  expect([...flagsOf(input).values()].join(' ')).toBe(flags)
})

it('a list of values that cannot be used makes its property one without a flag', () => {
  const loras = { type: 'array', items: { type: 'string', enum: [1] } }
  const { input } = documentOf({ input: { loras } })
  expect(input.properties.loras).toEqual({ type: 'other', description: '', json: loras })
})

describe('an input of a document', () => {
  const styles = { type: 'array', items: { type: 'string', enum: ['ink', 'oil'] }, maxItems: 2 }
  const { input } = documentOf({
    input: { ...SCHEMA, properties: { ...SCHEMA.properties, styles } },
  })
  it.each<[object, readonly string[]]>([
    [{ prompt: 'fox', size: 's', region: 'anything', either: null }, []],
    [{}, ['prompt is missing', 'size is missing']],
    [{ prompt: 'sixsix', size: 's' }, ['prompt must have at most 5 characters, not 6']],
    [{ prompt: 'x', size: 's', steps: 51 }, ['steps must be a whole number from 1 to 50, not 51']],
    [{ prompt: 'x', size: 's', guidance: '1' }, ['guidance must be a number from 0, not "1"']],
    [{ prompt: 'x', size: 's', loras: ['a', 'b', 'c'] }, ['loras takes at most 2, not 3']],
    [{ prompt: 'x', size: 's', tiled: 'yes' }, ['tiled must be true or false, not "yes"']],
    [{ prompt: 'x', size: 's', styles: ['ink', 'oil'] }, []],
    [
      { prompt: 'x', size: 's', styles: ['inc', 'ink'] },
      ['styles/0 must be one of ink, oil, not "inc" (did you mean "ink"?)'],
    ],
    [{ prompt: 'x', size: 's', constructor: 1, toString: 1 }, []],
  ])('%j: %j', (value, problems) => {
    expect(
      inputProblems(input, value as Record<string, unknown>).map(
        ({ parameter, message }) => `${parameter} ${message}`,
      ),
    ).toEqual(problems)
  })
})

it('has the defaults of its parameters', () => {
  expect(defaultsOf(documentOf({ input: SCHEMA }).input)).toEqual({ size: 's', steps: 20 })
})

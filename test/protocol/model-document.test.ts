import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
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

const IMAGE = { name: 'acme/still-2', kind: 'image' }

/** The document of an image model with these fields, as a model file has them. */
function documentOf(fields: string): ModelDocument {
  const { document, problems } = read({ ...IMAGE, ...parse(fields) })
  expect(problems).toEqual([])
  return document as ModelDocument
}

const PROPERTIES = `
    prompt: { type: string, description: What to draw, maxLength: 5 }
    size: { type: string, enum: [s, m], default: s }
    steps: { type: integer, minimum: 1, maximum: 50, default: 20 }
    guidance: { type: number, minimum: 0 }
    tiled: { type: boolean }
    loras: { type: array, items: { type: string }, maxItems: 2 }
    region: { type: object, properties: { x: { type: integer } } }
    either: { anyOf: [{ type: string }, { type: "null" }] }`
const WHOLE = `
input:
  type: object
  title: image
  description: Stills
  required: [prompt, size]
  properties:${PROPERTIES}`

const inputOf = (fields: string) => documentOf(fields).input

/** What is wrong with an input. */
const problemsOf = (schema: ModelDocument['input'], input: object) =>
  inputProblems(schema, input as Record<string, unknown>).map(
    ({ parameter, message }) => `${parameter} ${message}`,
  )

describe('a document', () => {
  it('with a whole schema has its properties alone', () => {
    const input = inputOf(WHOLE)
    expect(input.required).toEqual(['prompt', 'size'])
    expect(
      Object.entries(input.properties)
        .map(([name, { type }]) => `${name}: ${type}`)
        .join(', '),
    ).toBe(
      'prompt: string, size: string, steps: integer, guidance: number, tiled: boolean, loras: array, region: other, either: other',
    )
    expect(defaultsOf(input)).toEqual({ size: 's', steps: 20 })
  })

  it('in the short form adds to the built-in properties of its kind, and takes away from them', () => {
    const input = inputOf(
      'input: { aspect_ratio: false, seed: { type: integer, required: true }, quality: { type: string } }',
    )
    const { aspect_ratio: _, ...others } = builtInSchema('image').properties
    expect(Object.keys(input.properties)).toEqual([...Object.keys(others), 'seed'])
    expect(input.required).toEqual(['prompt', 'seed'])
    expect(inputOf('kind: video')).toEqual(builtInSchema('video'))
    expect(inputOf('input: { prompt: false }').required).toEqual([])
    expect(input.properties.seed).toEqual({ type: 'integer', description: '' })
  })

  it.each([
    ['maxLength: 9', ['prompt']],
    ['maxLength: 9, required: false', []],
  ])(
    'keeps a built-in property required that it replaces, unless it says otherwise: %s',
    (more, required) => {
      expect(inputOf(`input: { prompt: { type: string, ${more} } }`).required).toEqual(required)
    },
  )

  it('shows the keywords that it was read with, without its engine', () => {
    const fields = `${WHOLE}\nprice: { run: 0.1, factors: { size: { m: 1.5 } } }\ndefault: true`
    const shown = documentJson(documentOf(`${fields}\nengine: { url: x }`))
    const { input, ...others } = parse(fields)
    expect(shown).toMatchObject({ ...IMAGE, ...others })
    expect(read(shown).document).toEqual(documentOf(fields))
    expect(shown).not.toHaveProperty('engine')
    expect(shown).toHaveProperty('input.properties.region', input.properties.region)
  })

  it('accepts any value where a property is a text or an object, and is shown so', () => {
    const size = '{ anyOf: [{ type: string, enum: [square, wide] }, { type: object }], description: Size }'
    const document = documentOf(`input: { size: ${size} }`)
    expect(documentJson(document)).toHaveProperty('input.properties.size', parse(size))
    expect(read(documentJson(document)).document).toEqual(document)
    for (const value of ['wide', { width: 640 }, 'huge'])
      expect(problemsOf(document.input, { prompt: 'x', size: value })).toEqual([])
  })

  it.each([
    ['name: "acme/\\u001b[31m"', 'name: must be a model name of the form <provider>/<name>'],
    ['kind: audio', 'kind: must be video or image'],
    ['default: 1', 'default: must be true or false'],
    [`pad: ${'x'.repeat(300_000)}`, ': is larger than 256 KiB'],
    ['input: { prompt: { type: integer } }', 'input.prompt: must be a string'],
    ['input: { image_urls: { type: string } }', 'input.image_urls: must be a list of strings'],
    ['input: { type: object, required: [x] }', 'input.required.0: "x" is not among the properties'],
    ['input: { type: object, required: x }', 'input.required: must be a list of strings'],
    ['input: { properties: { x: { type: string } } }', 'input: needs "type: object" beside "properties"'],
    [
      'input: { x: { type: int } }',
      'input.x.type: must be one of string, integer, number, boolean, array, object, null',
    ],
    ['input: { x: { type: integer, required: "yes" } }', 'input.x.required: must be true or false'],
    [
      'input: { x: { type: string, enum: [5, 10] } }',
      'input.x.enum: must be a list of 1 to 1000 values of type string (put numbers, true and false in quotes)',
    ],
    [
      'input: { x: { type: integer, enum: [] } }',
      'input.x.enum: must be a list of 1 to 1000 values of type integer',
    ],
    [
      'input: { x: { type: integer, enum: [1, 1.5] } }',
      'input.x.enum: must be a list of 1 to 1000 values of type integer',
    ],
    [
      'input: { x: { type: integer, minimum: 50, maximum: 1 } }',
      'input.x.minimum: 50 is greater than the maximum 1',
    ],
    ['input: { x: { type: string, maxLength: -1 } }', 'input.x.maxLength: must be a whole number from 0'],
    [
      'input: { x: { type: integer, maximum: 9, default: 10 } }',
      'input.x.default: must be a whole number up to 9, not 10',
    ],
    [
      'price: { run: 0.0000001 }',
      'price.run: must be a number from 0 to 1000000000 with at most six decimals',
    ],
    ['price: { run: 1, factors: { fps: { 1: 2 } } }', 'price.factors.fps: is not a property of the input'],
    [
      'price: { run: 1, factors: { image_urls: { 1: 1.5 } } }',
      'price.factors.image_urls: is a list or a map: only text, numbers and booleans can have factors',
    ],
    [
      'price: { run: 1, factors: { quality: { best: 2 } } }',
      'price.factors.quality.best: "best" is not one of basic, high',
    ],
    [
      '{ input: { hd: { type: boolean } }, price: { run: 1, factors: { hd: { yes: 2 } } } }',
      'price.factors.hd.yes: "yes" is not one of true, false',
    ],
    [
      '{ input: { steps: { type: integer } }, price: { run: 1, factors: { steps: { "05": 2 } } } }',
      'price.factors.steps.05: "05" is not a number in its shortest form',
    ],
  ])('is refused: %.80s', (fields, problem) => {
    const { document, problems } = read({ ...IMAGE, ...parse(fields) })
    expect(document).toBeUndefined()
    expect(problems).toContain(problem)
  })

  const many = Array.from({ length: 10_000 }, (_, index) => [`p${index}`, { type: 'string' }])
  it.each<[string, unknown, string]>([
    ['is not a map', null, ': is not a map'],
    [
      'has too many properties',
      { ...IMAGE, input: { type: 'object', properties: Object.fromEntries(many) } },
      `input.properties: has 10000 properties; the limit is ${MAX_PROPERTIES}`,
    ],
    [
      'has a property that every object has',
      JSON.parse('{"name":"a/b","kind":"image","input":{"__proto__":{"type":"string"}}}'),
      'input.__proto__: "__proto__" is not a property name',
    ],
    [
      'is nested too deeply to be written',
      { ...IMAGE, deep: JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) },
      ': is larger than 256 KiB',
    ],
  ])('is refused that %s', (_, value, problem) => {
    expect(read(value)).toEqual({ problems: [problem] })
  })

  it('never runs a regular expression', () => {
    const input = inputOf('input: { code: { type: string, pattern: "^(a+)+$" } }')
    expect(problemsOf(input, { prompt: 'x', code: `${'a'.repeat(40)}!` })).toEqual([])
  })
})

it.each([
  [['output', 'a_b', 'a-b', 'tiled', 'no_tiled', 'wait'], '--a-b --tiled'],
  [['guidanceScale', 'guidance_scale', 'guidance'], '--guidance-scale --guidance'],
  // commander keeps the values of these under one key.
  [['lora_1', 'lora1', 'lora_2'], '--lora-1 --lora-2'],
  [['show', 'dryRun', 'promptFile', 'noLogo', 'n'], '--n'],
])('the flags of %j are %s: never the name of another flag', (names, flags) => {
  const properties = names.map((name) => `${name}: { type: boolean }`)
  const input = inputOf(`input: { type: object, properties: { ${properties} } }`)
  expect([...flagsOf(input).values()].join(' ')).toBe(flags)
})

it('a list of values that cannot be used makes its property one without a flag', () => {
  const loras = '{ type: array, items: { type: string, enum: [1] } }'
  const other = { type: 'other', description: '', json: parse(loras) }
  expect(inputOf(`input: { loras: ${loras} }`).properties.loras).toEqual(other)
})

it.each([
  ['region: anything, either: null', []],
  ['prompt: sixsix', ['prompt must have at most 5 characters, not 6']],
  ['steps: 51', ['steps must be a whole number from 1 to 50, not 51']],
  ['guidance: "1"', ['guidance must be a number from 0, not "1"']],
  ['loras: [a, b, c]', ['loras takes at most 2, not 3']],
  ['tiled: "yes"', ['tiled must be true or false, not "yes"']],
  ['styles: [ink, oil]', []],
  ['styles: [inc, ink]', ['styles/0 must be one of ink, oil, not "inc" (did you mean "ink"?)']],
  ['constructor: 1, toString: 1', []],
])('an input of a document with %s: %j', (fields, problems) => {
  const input = inputOf(
    `${WHOLE}\n    styles: { type: array, items: { type: string, enum: [ink, oil] }, maxItems: 2 }`,
  )
  expect(problemsOf(input, {})).toEqual(['prompt is missing', 'size is missing'])
  expect(problemsOf(input, { prompt: 'fox', size: 's', ...parse(`{${fields}}`) })).toEqual(problems)
})

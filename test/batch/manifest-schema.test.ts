/** The published schema of a manifest against the validator. */
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { KINDS, MODEL_INPUTS, type ParameterSchema } from '../../src/protocol/models.js'
import { validatorOf } from '../support/schemas.js'
import { problemsOf } from './folder.js'

const schemaAccepts = validatorOf('manifest')

/** A manifest of one image with these fields more, or others. */
const row = (fields: string) => [{ name: 'fox', kind: 'image', prompt: 'a fox', ...parse(`{${fields}}`) }]

interface Samples {
  readonly right: readonly unknown[]
  readonly wrong: readonly unknown[]
}

/** Values that a parameter takes and values that it refuses, from its schema. */
function samplesOf(schema: ParameterSchema): Samples {
  if (schema.type === 'array') {
    const { items, maxItems } = schema
    const list = (count: number) => Array(count).fill(items.enum?.[0] ?? 'https://a.example/x.png')
    return {
      right: [list(1), list(maxItems ?? 1)],
      wrong: [[true], 7, ...(maxItems === undefined ? [] : [list(maxItems + 1)])],
    }
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const { minimum, maximum } = schema
    return {
      right: [Number(minimum ?? 1), Number(maximum ?? minimum ?? 1)],
      wrong: [
        'many',
        ...(minimum === undefined ? [] : [Number(minimum) - 1]),
        ...(maximum === undefined ? [] : [Number(maximum) + 1]),
      ],
    }
  }
  if (schema.type === 'boolean') return { right: [true, false], wrong: ['perhaps', 7] }
  if ('enum' in schema && schema.enum !== undefined)
    return { right: schema.enum, wrong: ['none of them', ['x'], true] }
  return { right: ['x', 7], wrong: [['x'], ' '] }
}

const parameters = (samples: keyof Samples) =>
  KINDS.flatMap((kind) =>
    Object.entries(MODEL_INPUTS[kind].properties).flatMap(([name, schema]) =>
      samplesOf(schema)[samples].map((value) => [{ name: 'a', kind, prompt: 'x', [name]: value }]),
    ),
  )

const RIGHT: readonly unknown[] = [
  ...parameters('right'),
  ...[
    '[]',
    'runs: []',
    '{$schema: ./x.json, x-styles: [1], runs: [], models: null, defaults: null}',
    '{models: {image: acme/still-1, video: null}, runs: []}',
    '{defaults: {kind: image, quality: high}, runs: [{name: a, prompt: x, kind: video}]}',
    '{defaults: {kind: image, count: 2}, runs: [{name: a, prompt: x}]}',
    '{defaults: {kind: image}, runs: [{name: a, model: acme/other, prompt: x}]}',
    '[{name: "{kind}", prompt: x, matrix: {kind: [image, video]}}]',
    '[{name: "{duration}", prompt: x, kind: video, matrix: {duration: [5, "10"]}}]',
    '{defaults: {kind: image}, runs: [{name: "{kind}", prompt: x, matrix: {kind: [video]}, duration: "5"}]}',
  ].map((text) => parse(text)),
  ...[
    '',
    'quality: null, count: 3, output: "a/fox.{ext}"',
    'count: "3"',
    'name: 7, prompt: 2024',
    'image_urls: ["https://a.example/x.png", "run:abc#2", "data:image/png;base64,AA=="]',
    'kind: video, duration: 5',
    'matrix: null, exclude: null',
    'name: "{animal}", matrix: {animal: [fox, 1.5, true, {name: bear, text: a bear}]}',
    'name: "{animal}", prompt: "{animal}", matrix: {animal: [fox, bear]}, exclude: [{animal: fox}]',
    'name: "{quality}", quality: null, matrix: {quality: [basic, high]}',
    'name: "{look}", model: "{look.model}", matrix: {look: [{name: a, model: acme/x}]}',
    'name: "{n}", matrix: {n: [1], image_urls: [["https://a.example/x.png"]]}',
  ].map(row),
]

const NOT_KEYS = ['name', 'output', 'count', 'matrix', 'exclude', 'ext']

const WRONG: readonly unknown[] = [
  ...parameters('wrong'),
  ...[
    'null',
    'text',
    '{}',
    'runs: {}',
    '{models: {sound: a/b}, runs: []}',
    '{models: {image: acme}, runs: []}',
    '{defaults: {name: a}, runs: []}',
    '{defaults: image, runs: []}',
    '[1]',
    '[{name: a, prompt: x}]',
    '[{kind: image, prompt: x}]',
    '[{name: a, kind: image}]',
    '[{name: a, input: {}}]',
    '{defaults: {matrix: {a: [b]}}, runs: [{name: a, kind: image, prompt: x}]}',
  ].map((text) => parse(text)),
  ...[
    'kind: sound',
    'colour: red',
    'name: ""',
    'name: "a\\u0007"',
    `name: ${'a'.repeat(1_001)}`,
    'aspect_ratio: "21:10"',
    'kind: video, duration: 7',
    'image_urls: "https://a.example/x.png"',
    'image_urls: [" "]',
    'count: 0',
    'count: 10001',
    'count: three',
    'model: acme',
    'matrix: {}',
    'matrix: [a]',
    'matrix: {a: []}',
    'matrix: {a: [null]}',
    'matrix: {a: [b, b]}',
    'matrix: {a b: [c]}',
    ...NOT_KEYS.map((key) => `matrix: {${key}: [a]}`),
    'name: "{quality}", matrix: {quality: [hihg]}',
    'name: "{n}", duration: "5", matrix: {n: [1]}',
    'matrix: {prompt: [{name: a}]}, prompt: null',
    'matrix: {n: [1]}, exclude: [1]',
    'matrix: {n: [1]}, exclude: [{}]',
  ].map(row),
]

const titled = (manifests: readonly unknown[]) =>
  manifests.map((manifest) => [JSON.stringify(manifest).slice(0, 110), manifest])

it.each(titled(RIGHT))('the schema accepts, as the validator does, %s', async (_, manifest) => {
  expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).toEqual([])
  expect(schemaAccepts(manifest), JSON.stringify(schemaAccepts.errors)).toBe(true)
})

it.each(titled(WRONG))('the schema refuses, as the validator does, %s', async (_, manifest) => {
  expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).not.toEqual([])
  expect(schemaAccepts(manifest)).toBe(false)
})

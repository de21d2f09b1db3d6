/** The published schema against the validator. */

import { describe, expect, it } from 'vitest'
import { KINDS, MODEL_INPUTS, type ParameterSchema } from '../../src/protocol/models.js'
import { problemsOf } from './folder.js'
import { schemaAccepts } from './manifest-properties.js'

const row = (more: object) => [{ name: 'fox', kind: 'image', prompt: 'a fox', ...more }]
const withDefaults = (defaults: unknown, run: object, more: object = {}) => ({
  ...more,
  defaults,
  runs: [run],
})

/** Values that a parameter takes and values that it refuses, from its schema. */
function samplesOf(schema: ParameterSchema): {
  readonly right: readonly unknown[]
  readonly wrong: readonly unknown[]
} {
  if (schema.type === 'array') {
    const items = (count: number) =>
      Array.from({ length: count }, () => schema.items.enum?.[0] ?? 'https://a.example/x.png')
    const most = schema.maxItems ?? 1
    return {
      right: [items(1), items(most)],
      wrong: [[true], 7, ...(schema.maxItems === undefined ? [] : [items(most + 1)])],
    }
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const { minimum = 1, maximum = minimum } = schema
    return {
      right: [Number(minimum), Number(maximum)],
      wrong: [
        'many',
        ...(schema.minimum === undefined ? [] : [Number(minimum) - 1]),
        ...(schema.maximum === undefined ? [] : [Number(maximum) + 1]),
      ],
    }
  }
  if (schema.type === 'boolean') return { right: [true, false], wrong: ['perhaps', 7] }
  if ('enum' in schema && schema.enum !== undefined)
    return { right: schema.enum, wrong: ['none of them', ['x'], true] }
  return { right: ['x', 7], wrong: [['x'], ' '] }
}

const builtInRows = (of: 'right' | 'wrong') =>
  KINDS.flatMap((kind) =>
    Object.entries(MODEL_INPUTS[kind].properties).flatMap(([name, schema]) =>
      samplesOf(schema)[of].map((value) => [{ name: 'a', kind, prompt: 'x', [name]: value }]),
    ),
  )

const RIGHT: readonly unknown[] = [
  [],
  { runs: [] },
  { $schema: './x.json', 'x-styles': [1], runs: [], models: null, defaults: null },
  { models: { image: 'acme/still-1', video: null }, runs: [] },
  row({}),
  ...builtInRows('right'),
  row({ quality: null, count: 3, output: 'a/{index}.png' }),
  row({ count: '3' }),
  row({ name: 7, prompt: 2024 }),
  row({ image_urls: ['https://a.example/x.png', 'run:abc#2', 'data:image/png;base64,AA=='] }),
  row({ kind: 'video', duration: 5 }),
  [{ name: 'a', model: 'acme/other', input: { anything: [1, { x: null }] } }],
  withDefaults({ kind: 'image', quality: 'high' }, { name: 'a', prompt: 'x', kind: 'video' }),
  withDefaults({ kind: 'image', output: 'a/{name}.png' }, { name: 'a', prompt: 'x' }),
  withDefaults({ model: 'acme/other', input: { a: 1 } }, { name: 'a' }),
  withDefaults({ kind: 'image' }, { name: 'a', model: 'acme/other', input: {} }),
  row({ matrix: null, exclude: null }),
  row({ name: '{animal}', matrix: { animal: ['fox', 1.5, true, { name: 'bear', text: 'a bear' }] } }),
  row({
    name: '{animal}',
    prompt: '{animal}',
    matrix: { animal: ['fox', 'bear'] },
    exclude: [{ animal: 'fox' }],
  }),
  row({ name: '{quality}', quality: null, matrix: { quality: ['basic', 'high'] } }),
  row({ name: '{look}', model: '{look.model}', matrix: { look: [{ name: 'a', model: 'acme/x' }] } }),
  row({ name: '{n}', matrix: { n: [1], image_urls: [['https://a.example/x.png']] } }),
  [{ name: '{kind}', prompt: 'x', matrix: { kind: ['image', 'video'] } }],
  [{ name: '{duration}', prompt: 'x', kind: 'video', matrix: { duration: [5, '10'] } }],
  [{ name: '{n}', matrix: { n: [1], model: ['acme/x'], input: [{ seed: 1 }] } }],
  withDefaults(
    { kind: 'image' },
    { name: '{kind}', prompt: 'x', matrix: { kind: ['video'] }, duration: '5' },
  ),
]

const WRONG: readonly unknown[] = [
  ...builtInRows('wrong'),
  null,
  'text',
  {},
  { runs: {} },
  { models: { sound: 'a/b' }, runs: [] },
  { models: { image: 'acme' }, runs: [] },
  { defaults: { name: 'a' }, runs: [] },
  { defaults: 'image', runs: [] },
  [1],
  [{ name: 'a', prompt: 'x' }],
  [{ kind: 'image', prompt: 'x' }],
  [{ name: 'a', kind: 'image' }],
  row({ kind: 'sound' }),
  row({ colour: 'red' }),
  row({ name: '' }),
  row({ name: 'a\u0007' }),
  row({ name: 'a'.repeat(1_001) }),
  row({ aspect_ratio: '21:10' }),
  row({ kind: 'video', duration: 7 }),
  row({ image_urls: 'https://a.example/x.png' }),
  row({ image_urls: [' '] }),
  row({ count: 0 }),
  row({ count: 10_001 }),
  row({ count: 'three' }),
  row({ model: 'acme' }),
  [{ name: 'a', input: {} }],
  [{ name: 'a', model: 'acme/other', input: [] }],
  row({ matrix: {} }),
  row({ matrix: ['a'] }),
  row({ matrix: { a: [] } }),
  row({ matrix: { a: [null] } }),
  row({ matrix: { a: ['b', 'b'] } }),
  row({ matrix: { 'a b': ['c'] } }),
  ...['name', 'output', 'count', 'matrix', 'exclude', 'include', 'index', 'ext', 'id'].map((key) =>
    row({ matrix: { [key]: ['a'] } }),
  ),
  row({ name: '{quality}', matrix: { quality: ['hihg'] } }),
  row({ name: '{n}', duration: '5', matrix: { n: [1] } }),
  row({ matrix: { prompt: [{ name: 'a' }] }, prompt: null }),
  row({ matrix: { n: [1] }, exclude: [1] }),
  row({ matrix: { n: [1] }, exclude: [{}] }),
  [{ name: 'a', model: 'acme/x', matrix: { input: ['a'] } }],
  withDefaults({ matrix: { a: ['b'] } }, { name: 'a', kind: 'image', prompt: 'x' }),
]

describe('the schema of the manifest', () => {
  it.each(RIGHT.map((manifest) => [JSON.stringify(manifest).slice(0, 110), manifest]))(
    'accepts, as the validator does, %s',
    async (_, manifest) => {
      expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).toEqual([])
      expect(schemaAccepts(manifest), JSON.stringify(schemaAccepts.errors)).toBe(true)
    },
  )

  it.each(WRONG.map((manifest) => [JSON.stringify(manifest).slice(0, 110), manifest]))(
    'refuses, as the validator does, %s',
    async (_, manifest) => {
      expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).not.toEqual([])
      expect(schemaAccepts(manifest)).toBe(false)
    },
  )
})

/** The published schema against the validator. */
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { MANIFEST_SCHEMA } from '../../src/batch/manifest/manifest-schema.js'
import { KINDS, MODEL_INPUTS } from '../../src/protocol/models.js'
import { problemsOf } from './folder.js'

const accepts = new Ajv({ strict: false }).compile(MANIFEST_SCHEMA)

const row = (more: object) => [{ name: 'fox', kind: 'image', prompt: 'a fox', ...more }]
const withDefaults = (defaults: unknown, run: object, more: object = {}) => ({
  ...more,
  defaults,
  runs: [run],
})

const RIGHT: readonly unknown[] = [
  [],
  { runs: [] },
  { $schema: './x.json', 'x-styles': [1], runs: [], models: null, defaults: null },
  { models: { image: 'acme/still-1', video: null }, runs: [] },
  row({}),
  ...KINDS.flatMap((kind) =>
    Object.entries(MODEL_INPUTS[kind].properties).flatMap(([name, schema]) =>
      ('enum' in schema ? [...(schema.enum as readonly string[])] : []).map((value) => [
        { name: 'a', kind, prompt: 'x', [name]: value },
      ]),
    ),
  ),
  row({ quality: null, count: 3, output: 'a/{index}.png' }),
  row({ count: '3' }),
  row({ count: 10_000 }),
  row({ name: 7, prompt: 2024 }),
  row({ name: null, output: 'a.png' }),
  row({ prompt: true, model: 'acme/other' }),
  row({ image_urls: ['https://a.example/x.png', 'run:abc#2', 'data:image/png;base64,AA=='] }),
  row({ kind: 'video', duration: 5 }),
  row({ kind: 'video', quality: null }),
  [{ name: 'a', model: 'acme/other', input: { anything: [1, { x: null }] } }],
  withDefaults({ kind: 'image' }, { name: 'a', prompt: 'x', quality: 'high' }),
  withDefaults({ kind: 'image', quality: 'high' }, { name: 'a', prompt: 'x', kind: 'video' }),
  withDefaults({ kind: 'video', prompt: 'x' }, { name: 'a', duration: '10' }),
  withDefaults({ kind: 'image', output: 'a/{name}.png' }, { name: 'a', prompt: 'x' }),
  withDefaults({ model: 'acme/other' }, { name: 'a', input: {} }),
  withDefaults({ model: 'acme/other', input: { a: 1 } }, { name: 'a' }),
  withDefaults({ kind: 'image' }, { name: 'a', model: 'acme/other', input: {} }),
]

const WRONG: readonly unknown[] = [
  null,
  1,
  'text',
  {},
  { runs: null },
  { runs: {} },
  { run: [], runs: [] },
  { models: [], runs: [] },
  { models: { sound: 'a/b' }, runs: [] },
  { models: { image: 'acme' }, runs: [] },
  { defaults: { name: 'a' }, runs: [] },
  { defaults: { colour: 'red' }, runs: [] },
  { defaults: 'image', runs: [] },
  [1],
  [[]],
  [{ name: 'a', prompt: 'x' }],
  [{ kind: 'image', prompt: 'x' }],
  [{ name: null, output: null, kind: 'image', prompt: 'x' }],
  [{ name: 'a', kind: 'image' }],
  row({ kind: 'sound' }),
  row({ colour: 'red' }),
  row({ prompt: null }),
  row({ prompt: ' \n' }),
  row({ prompt: ['x'] }),
  row({ prompt: {} }),
  row({ name: '' }),
  row({ name: 'a\u0007' }),
  row({ name: 'a'.repeat(1_001) }),
  row({ name: ['a'] }),
  row({ output: {} }),
  row({ quality: 'hihg' }),
  row({ quality: ['high'] }),
  row({ quality: true }),
  row({ aspect_ratio: '21:10' }),
  row({ duration: 5 }),
  row({ resolution: '720p' }),
  row({ kind: 'video', aspect_ratio: '2:3' }),
  row({ kind: 'video', quality: 'high' }),
  row({ kind: 'video', duration: 7 }),
  row({ image_urls: 'https://a.example/x.png' }),
  row({ image_urls: [1] }),
  row({ image_urls: [' '] }),
  row({ image_urls: Array(15).fill('https://a.example/x.png') }),
  row({ count: 0 }),
  row({ count: 1.5 }),
  row({ count: 10_001 }),
  row({ count: true }),
  row({ count: 'three' }),
  row({ model: 'acme' }),
  row({ input: {} }),
  [{ name: 'a', input: {} }],
  [{ name: 'a', model: 'acme/other', input: [] }],
  [{ name: 'a', model: 'acme/other', input: {}, prompt: 'x' }],
  withDefaults({ kind: 'video' }, { name: 'a', prompt: 'x', quality: 'high' }),
  withDefaults({ kind: 'image' }, { name: 'a' }),
  withDefaults({ quality: 'high' }, { name: 'a', prompt: 'x' }),
  withDefaults({ kind: 'image' }, { name: 'a', input: {} }),
]

describe('the schema of the manifest', () => {
  it.each(RIGHT.map((manifest) => [JSON.stringify(manifest).slice(0, 110), manifest]))(
    'accepts, as the validator does, %s',
    async (_, manifest) => {
      expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).toEqual([])
      expect(accepts(manifest), JSON.stringify(accepts.errors)).toBe(true)
    },
  )

  it.each(WRONG.map((manifest) => [JSON.stringify(manifest).slice(0, 110), manifest]))(
    'refuses, as the validator does, %s',
    async (_, manifest) => {
      expect(await problemsOf(JSON.stringify(manifest), { name: 'm.json' })).not.toEqual([])
      expect(accepts(manifest)).toBe(false)
    },
  )
})

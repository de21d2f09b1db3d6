/** Rows of models with documents: each row has the parameters of its own model, in every format. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { identityOf } from '../../src/protocol/identity.js'
import { dataUrl } from '../../src/protocol/media.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { ROOT } from '../support/project.js'
import { entriesOf, problemsOf, type ReadOptions, read } from './folder.js'
import { schemaAccepts } from './manifest-properties.js'

const documentOf = (value: object) =>
  readModelDocument(value, (path, message) => {
    throw new Error(`${path.join('.')}: ${message}`)
  }) ?? expect.unreachable()

const STILL = documentOf({
  name: 'acme/still-2',
  kind: 'image',
  input: {
    quality: { type: 'string', enum: ['draft', 'final'] },
    steps: { type: 'integer', minimum: 1, maximum: 50 },
    seed: { type: 'integer', minimum: 0, maximum: 4294967295 },
    tags: { type: 'array', items: { type: 'string' } },
    tiled: { type: 'boolean' },
    style: { type: 'object' },
  },
})
const CINEMA = documentOf({
  name: 'acme/cinema-3',
  kind: 'video',
  input: {
    type: 'object',
    required: ['prompt', 'frames'],
    properties: { prompt: { type: 'string' }, frames: { type: 'integer' }, seed: { type: 'string' } },
  },
})
const UPSCALE = documentOf({
  name: 'other/upscale',
  kind: 'image',
  input: {
    type: 'object',
    required: ['image_urls', 'factor'],
    properties: {
      image_urls: { type: 'array', items: { type: 'string' }, maxItems: 1 },
      factor: { type: 'number', enum: [2, 4] },
      name: { type: 'string' },
    },
  },
})
const documents = [STILL, CINEMA, UPSCALE]
const URL = 'https://a.example/1.png'

const yaml = (rows: readonly object[]) => rows.map((row) => `- ${JSON.stringify(row)}`).join('\n')
function csv(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cell = (value: unknown) => (value === undefined ? '' : [value].flat().join(' '))
  return [names, ...rows.map((row) => names.map((name) => cell(row[name])))]
    .map((cells) => cells.join(','))
    .join('\n')
}

const FORMATS = [
  ['m.yaml', yaml],
  ['m.csv', csv],
] as const

describe('three models in one manifest', () => {
  const rows = [
    {
      name: 'a',
      model: 'acme/still-2',
      prompt: 'a fox',
      quality: 'draft',
      steps: 30,
      seed: 7,
      tags: ['x', 'y'],
      tiled: true,
    },
    { name: 'b', model: 'acme/cinema-3', prompt: 'it runs', frames: 48, seed: '007' },
    { name: 'c', model: 'other/upscale', image_urls: [URL], factor: 2 },
    { name: 'd', kind: 'image', prompt: 'a bear', quality: 'high' },
  ]

  it.each(FORMATS)('%s: each row is sent with its own parameters and types', async (name, write) => {
    const entries = await entriesOf(write(rows), { name, documents })
    expect(entries.map(({ kind, model, input }) => ({ kind, model, input }))).toEqual([
      {
        kind: 'image',
        model: 'acme/still-2',
        input: { prompt: 'a fox', quality: 'draft', steps: 30, seed: 7, tags: ['x', 'y'], tiled: true },
      },
      { kind: 'video', model: 'acme/cinema-3', input: { prompt: 'it runs', frames: 48, seed: '007' } },
      { kind: 'image', model: 'other/upscale', input: { image_urls: [URL], factor: 2 } },
      { kind: 'image', model: undefined, input: { prompt: 'a bear', quality: 'high' } },
    ])
    expect(schemaAccepts(rows), JSON.stringify(schemaAccepts.errors)).toBe(true)
  })

  const wrong = [
    { name: 'a', model: 'acme/still-2', prompt: 'a fox', quality: 'fnal', seed: -1 },
    { name: 'b', model: 'acme/cinema-3', prompt: 'it runs', frames: 1.5 },
    { name: 'c', model: 'other/upscale', image_urls: [URL], factor: 3, prompt: 'x' },
    { name: 'd', kind: 'image', prompt: 'a bear', quality: 'draft' },
  ]
  const inOrder = (frames: string) => [
    'quality of acme/still-2 must be one of draft, final, not "fnal" (did you mean "final"?)',
    'seed of acme/still-2 must be a whole number from 0 to 4294967295, not -1',
    `frames of acme/cinema-3 must be a whole number, not ${frames}`,
    'other/upscale has no field "prompt"; expected one of: name, kind, model, output, count, label, input, matrix, exclude, image_urls, factor, name',
    'factor of other/upscale must be one of 2, 4, not 3',
    'quality of an image must be one of basic, high, not "draft"',
  ]
  it.each([
    ['m.yaml', yaml, '1 1 2 3 3 4'],
    ['m.csv', csv, '2 2 3 4 4 5'],
  ])('%s: a mistake in each is named with its line', async (name, write, places) => {
    const problems = await problemsOf(write(wrong), { name, documents })
    expect(problems.map((each) => each.replace(/^\S+ /, ''))).toEqual(
      inOrder(name === 'm.csv' ? '"1.5"' : '1.5'),
    )
    expect(problems.map((each) => each.split(' ')[0]).join(' ')).toBe(places)
  })
})

describe('a CSV file', () => {
  it('has JSON in the cell of a parameter of another type, and names a parameter that a model does not have', async () => {
    const text = 'name,model,prompt,frames,style\nx,acme/still-2,x,,"{""ink"": [1]}"\nb,acme/cinema-3,x,5,'
    expect(await entriesOf(text, { name: 'm.csv', documents })).toMatchObject([
      { input: { style: { ink: [1] } } },
      { input: { frames: 5 } },
    ])
    const wrong = text.replace(',5,', ',5,x')
    expect(await problemsOf(wrong, { name: 'm.csv', documents })).toEqual([
      expect.stringContaining('3 acme/cinema-3 has no field "style"; expected one of: name, kind'),
    ])
  })
})

describe('a row', () => {
  const one = async (text: string, more: ReadOptions = {}) =>
    (await entriesOf(text, { documents, ...more }))[0]

  it('of a kind has the parameters of the model in models, else in the settings', async () => {
    const row = '{name: a, kind: image, prompt: x, steps: 5}'
    expect(await one(`models: {image: acme/still-2}\nruns: [${row}]`)).toMatchObject({
      model: 'acme/still-2',
      input: { prompt: 'x', steps: 5 },
    })
    expect(await one(`[${row}]`, { settings: { image: 'acme/still-2' } })).toMatchObject({
      model: undefined,
      input: { prompt: 'x', steps: 5 },
    })
    const wrong = { documents, settings: { image: 'acme/cinema-3' } }
    expect(await problemsOf('[{name: a, kind: image, prompt: x}]', wrong)).toEqual([
      '1 the kind of acme/cinema-3 is video, not image',
    ])
  })

  it('takes the defaults that its model has, and each default is of some model', async () => {
    const text = `defaults: {kind: image, steps: 5, frames: 48, seed: 3}
runs: [{name: a, model: acme/still-2, prompt: x}, {name: b, model: acme/cinema-3, prompt: x}, {name: c, prompt: x}]`
    expect((await entriesOf(text, { documents })).map(({ input }) => input)).toEqual([
      { prompt: 'x', steps: 5, seed: 3 },
      { prompt: 'x', frames: 48, seed: '3' },
      { prompt: 'x' },
    ])
    expect(await problemsOf(text.replace('steps', 'stpes'), { documents })).toEqual([
      '1 unknown field "stpes". Did you mean "steps"?',
    ])
  })

  it.each([
    ['kind: video, model: acme/still-2, prompt: x', '1 the kind of acme/still-2 is image, not video'],
    [
      'model: acme/unknown, prompt: x, steps: 5',
      /^1 input is missing, and the parameters of acme\/unknown are not known here: `rushes models --refresh` asks/,
    ],
    [
      'kind: image, model: acme/unknown, prompt: x, steps: 5',
      /^1 the image model has no field "steps".* \(the parameters of acme\/unknown are not known here: `rushes models --refresh` asks the service\)$/,
    ],
    ['model: other/upscale, factor: 2', '1 image_urls is missing'],
    ['model: acme/still-2, steps: 3, input: {}', '1 steps must be inside input'],
    [
      'model: acme/still-2, input: {prompt: x, seed: 1.5}',
      '1 seed of acme/still-2 must be a whole number from 0 to 4294967295, not 1.5',
    ],
    [
      'model: acme/still-2, input: {prompt: x, stpes: 3}',
      '1 acme/still-2 has no parameter "stpes". Did you mean "steps"?',
    ],
    ['model: acme/still-2, input: {steps: 3}', '1 prompt is missing'],
  ])('%s: %s', async (row, problem) => {
    const [first] = await problemsOf(`- {name: a, ${row}}`, { documents })
    if (typeof problem === 'string') expect(first).toBe(problem)
    else expect(first).toMatch(problem)
  })

  it('has a parameter with the name of a field in its input, and ones that no document names', async () => {
    const input = { image_urls: [URL], factor: 2, name: 'mine', secret_mode: true }
    expect(await one(`- {name: a, model: other/upscale, input: ${JSON.stringify(input)}}`)).toMatchObject({
      name: 'a',
      kind: 'image',
      input,
    })
  })

  it('knows the input that it had before its document was known', async () => {
    const text = `defaults: {kind: image, model: acme/still-2}
runs: [{name: "a-{seed}", prompt: x, matrix: {seed: [1]}}]`
    const [before] = await entriesOf(text, {})
    const [after] = await entriesOf(text, { documents })
    expect(after).toMatchObject({
      input: { prompt: 'x', seed: 1 },
      identities: [{ prompt: 'x', seed: 1 }, before?.input],
    })
  })

  it('means the same before and after its document is known', async () => {
    const text = `defaults: {model: acme/still-2, input: {prompt: x, seed: 1}}
runs: [{name: a}, {name: b, input: {prompt: y}}]`
    const before = await entriesOf(text, {})
    const after = await entriesOf(text, { documents })
    const inputs = (entries: typeof before) => entries.map(({ model, input }) => ({ model, input }))
    expect(inputs(after)).toEqual(inputs(before))
  })
})

describe('a matrix', () => {
  const inputs = async (text: string) =>
    (await entriesOf(text, { documents })).map(({ name, model, input }) => [name, model, input])

  it('sets the parameters of the model, with the types of its schema', async () => {
    expect(
      await inputs(
        '- {name: "{steps}-{tiled}", model: acme/still-2, prompt: x, matrix: {steps: [5, 10], tiled: [true]}}',
      ),
    ).toEqual([
      ['5-true', 'acme/still-2', { prompt: 'x', steps: 5, tiled: true }],
      ['10-true', 'acme/still-2', { prompt: 'x', steps: 10, tiled: true }],
    ])
    expect(
      await inputs(
        '- {name: "{n}", model: acme/still-2, prompt: x, steps: "{n}", matrix: {n: [5], tags: [[a, b]]}}',
      ),
    ).toEqual([['5', 'acme/still-2', { prompt: 'x', steps: 5, tags: ['a', 'b'] }]])
  })

  it.each([
    ['matrix: {model: [acme/still-2, acme/cinema-3], seed: [7]}', ''],
    [
      'model: "acme/{m.text}-{m.n}", matrix: {m: [{name: a, text: still, n: 2}, {name: b, text: cinema, n: 3}], seed: [7]}',
      '',
    ],
    ['matrix: {m: [still-2, cinema-3], seed: [7]}', 'defaults: {model: "acme/{m}", frames: 5}\n'],
  ])('with several models has the fields of each: %s', async (row, defaults) => {
    const text = `${defaults || 'defaults: {frames: 5}\n'}runs: [{name: "{index}", output: "{kind}.png", prompt: x, ${row}}]`
    expect((await inputs(text.replace('name: "{index}", ', ''))).map(([, ...rest]) => rest)).toEqual([
      ['acme/still-2', { prompt: 'x', seed: 7 }],
      ['acme/cinema-3', { prompt: 'x', frames: 5, seed: '7' }],
    ])
  })

  it.each([
    [
      'model: acme/still-2, matrix: {steps: [5, 99]}, name: "{steps}"',
      '1 steps of acme/still-2 must be a whole number from 1 to 50, not 99',
    ],
    ['model: acme/still-2, matrix: {tags: [a]}, name: a', '1 tags of acme/still-2 must be a list of strings'],
    [
      'model: acme/still-2, matrix: {frames: [5]}, name: "{frames}", frames: 5',
      '1 acme/still-2 has no field "frames"',
    ],
  ])('%s: %s', async (row, problem) => {
    const [first] = await problemsOf(`- {prompt: x, ${row}}`, { documents })
    expect(first).toContain(problem)
  })
})

describe('what a manifest of today sends', () => {
  // Recorded before models had documents: another hash would create, and charge, every run again.
  it.each([
    ['shop/shop.yaml', 23, '050e9a715b72522d6f5297a87d73e12b5d1cd94a5d13b74030565a999309f179'],
    ['sprites/sprites.yaml', 23, '4414e97655ec631e8c415707440a95d36b644a1dc2c9be0261615d33eb1d5972'],
    ['trailer/trailer.yaml', 21, '0b53e247091ad3f1d7be234b905b143e6620d3778522f167cbf84bced042ebf8'],
  ])('is unchanged: %s', async (path, runs, hash) => {
    const folder = join(ROOT, 'examples', path.split('/')[0] ?? '')
    const result = await read(readFileSync(join(ROOT, 'examples', path)), {
      name: path.split('/')[1] ?? '',
      folder,
    })
    const entries = result.ok ? result.manifest.entries : expect.unreachable()
    const rows = entries.map(
      ({ name, kind, output, model, identities }) =>
        `${name} ${kind} ${output} ${identityOf(model ?? 'acme/x', identities[0])}`,
    )
    expect(rows).toHaveLength(runs)
    expect(createHash('sha256').update(rows.join('\n')).digest('hex')).toBe(hash)
  })
})

it('a data: URL in another parameter than image_urls has the hash that it had in earlier lock files', async () => {
  const retouch = documentOf({ name: 'acme/retouch', kind: 'image', input: { mask_url: { type: 'string' } } })
  const row = { model: 'acme/retouch', prompt: 'a fox', mask_url: dataUrl(ONE_PIXEL_PNG, 'image/png') }
  const [entry] = await entriesOf(yaml([{ name: 'a', ...row }]), { documents: [retouch] })
  expect(entry?.media).toContain('mask_url')
  const { model, prompt, mask_url } = row
  const text = JSON.stringify({ input: { mask_url, prompt }, model })
  expect(identityOf(model, entry?.identities[0])).toBe(createHash('sha256').update(text).digest('hex'))
})

/** Rows of models with documents: each row has the parameters of its own model, in every format. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { identityOf } from '../../src/protocol/identity.js'
import { ROOT } from '../support/project.js'
import { validatorOf } from '../support/schemas.js'
import { documentsOf, entriesOf, problemsOf, read } from './folder.js'

const schemaAccepts = validatorOf('manifest')

const documents = documentsOf(`
- name: acme/still-2
  kind: image
  input:
    quality: { type: string, enum: [draft, final] }
    steps: { type: integer, minimum: 1, maximum: 50 }
    seed: { type: integer, minimum: 0, maximum: 4294967295 }
    tags: { type: array, items: { type: string } }
    tiled: { type: boolean }
    style: { type: object }
- name: acme/cinema-3
  kind: video
  input:
    type: object
    required: [prompt, frames]
    properties: { prompt: { type: string }, frames: { type: integer }, seed: { type: string } }
- name: other/upscale
  kind: image
  input:
    type: object
    required: [image_urls, factor]
    properties:
      image_urls: { type: array, items: { type: string }, maxItems: 1 }
      factor: { type: number, enum: [2, 4] }
      name: { type: string }
`)

const inputsOf = async (text: string, known = documents) =>
  (await entriesOf(text, { documents: known })).map(({ input }) => input)

describe('three models in one manifest', () => {
  const JSON_ROWS = `[
    { "name": "a", "model": "acme/still-2", "prompt": "a fox", "quality": "draft", "steps": 30, "seed": 7, "tags": ["x", "y"], "tiled": true },
    { "name": "b", "model": "acme/cinema-3", "prompt": "it runs", "frames": 48, "seed": "007" },
    { "name": "c", "model": "other/upscale", "image_urls": ["https://a.example/1.png"], "factor": 2 },
    { "name": "d", "kind": "image", "prompt": "a bear", "quality": "high" }]`
  const CSV_ROWS = `name,model,kind,prompt,quality,steps,seed,tags,tiled,frames,image_urls,factor
a,acme/still-2,,a fox,draft,30,7,x y,true,,,
b,acme/cinema-3,,it runs,,,007,,,48,,
c,other/upscale,,,,,,,,,https://a.example/1.png,2
d,,image,a bear,high,,,,,,,`

  it.each([
    ['m.json', JSON_ROWS],
    ['m.csv', CSV_ROWS],
  ])('%s: each row is sent with its own parameters and types', async (name, text) => {
    const entries = await entriesOf(text, { name, documents })
    expect(entries.map(({ kind, model, input }) => [kind, model, input])).toEqual([
      [
        'image',
        'acme/still-2',
        { prompt: 'a fox', quality: 'draft', steps: 30, seed: 7, tags: ['x', 'y'], tiled: true },
      ],
      ['video', 'acme/cinema-3', { prompt: 'it runs', frames: 48, seed: '007' }],
      ['image', 'other/upscale', { image_urls: ['https://a.example/1.png'], factor: 2 }],
      ['image', undefined, { prompt: 'a bear', quality: 'high' }],
    ])
    const rows = JSON.parse(JSON_ROWS)
    expect(schemaAccepts(rows), JSON.stringify(schemaAccepts.errors)).toBe(true)
  })

  it.each([
    [
      'm.yaml',
      `- { name: a, model: acme/still-2, prompt: a fox, quality: fnal, seed: -1 }
- { name: b, model: acme/cinema-3, prompt: it runs, frames: 1.5 }
- { name: c, model: other/upscale, image_urls: ["https://a.example/1.png"], factor: 3, prompt: x }
- { name: d, kind: image, prompt: a bear, quality: draft }`,
      [1, 1, 2, 3, 3, 4],
      '1.5',
    ],
    [
      'm.csv',
      `name,model,kind,prompt,quality,seed,frames,image_urls,factor
a,acme/still-2,,a fox,fnal,-1,,,
b,acme/cinema-3,,it runs,,,1.5,,
c,other/upscale,,x,,,,https://a.example/1.png,3
d,,image,a bear,draft,,,,`,
      [2, 2, 3, 4, 4, 5],
      '"1.5"',
    ],
  ])('%s: a mistake in each is named with its line', async (name, text, lines, frames) => {
    const problems = [
      'quality of acme/still-2 must be one of draft, final, not "fnal" (did you mean "final"?)',
      'seed of acme/still-2 must be a whole number from 0 to 4294967295, not -1',
      `frames of acme/cinema-3 must be a whole number, not ${frames}`,
      'other/upscale has no field "prompt"; expected one of: name, kind, model, output, count, label, matrix, exclude, image_urls, factor',
      'factor of other/upscale must be one of 2, 4, not 3',
      'quality of an image must be one of basic, high, not "draft"',
    ]
    expect(await problemsOf(text, { name, documents })).toEqual(
      problems.map((problem, at) => `${lines[at]} ${problem}`),
    )
  })
})

it('a CSV file has JSON in the cell of a parameter of another type, and names a parameter that a model does not have', async () => {
  const options = { name: 'm.csv', documents }
  const text = 'name,model,prompt,frames,style\nx,acme/still-2,x,,"{""ink"": [1]}"\nb,acme/cinema-3,x,5,'
  expect(await entriesOf(text, options)).toMatchObject([
    { input: { style: { ink: [1] } } },
    { input: { frames: 5 } },
  ])
  expect(await problemsOf(`${text}x`, options)).toEqual([
    expect.stringContaining('3 acme/cinema-3 has no field "style"; expected one of: name, kind'),
  ])
})

describe('a row', () => {
  it('of a kind has the parameters of the model in models, else in the settings', async () => {
    const rows = '[{name: a, kind: image, prompt: x, steps: 5}]'
    const input = { prompt: 'x', steps: 5 }
    expect(await entriesOf(`models: {image: acme/still-2}\nruns: ${rows}`, { documents })).toMatchObject([
      { model: 'acme/still-2', input },
    ])
    const settings = { image: 'acme/still-2' }
    expect(await entriesOf(rows, { documents, settings })).toMatchObject([{ model: undefined, input }])
    const wrong = { documents, settings: { image: 'acme/cinema-3' } }
    expect(await problemsOf('[{name: a, kind: image, prompt: x}]', wrong)).toEqual([
      '1 the kind of acme/cinema-3 is video, not image',
    ])
  })

  it('takes the defaults that its model has, and each default is of some model', async () => {
    const text = `defaults: {kind: image, steps: 5, frames: 48, seed: 3}
runs: [{name: a, model: acme/still-2, prompt: x}, {name: b, model: acme/cinema-3, prompt: x}, {name: c, prompt: x}]`
    expect(await inputsOf(text)).toEqual([
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
      /^1 the parameters of acme\/unknown are not known here: `rushes models --refresh` asks/,
    ],
    [
      'kind: image, model: acme/unknown, prompt: x, steps: 5',
      /^1 the image model has no field "steps".* \(the parameters of acme\/unknown are not known here: `rushes models --refresh` asks the service\)$/,
    ],
    ['model: other/upscale, factor: 2', '1 image_urls is missing'],
    ['model: acme/still-2, prompt: x, input: {}', /^1 acme\/still-2 has no field "input"/],
    [
      'model: acme/still-2, prompt: x, matrix: {steps: [5, 99]}, name: "{steps}"',
      '1 steps of acme/still-2 must be a whole number from 1 to 50, not 99 (steps: 99)',
    ],
    [
      'model: acme/still-2, prompt: x, matrix: {tags: [a]}',
      '1 tags of acme/still-2 must be a list of strings, not "a" (tags: a)',
    ],
    [
      'model: acme/still-2, prompt: x, matrix: {frames: [5]}, name: "{frames}", frames: 5',
      /^1 acme\/still-2 has no field "frames"/,
    ],
  ])('is refused: %s: %s', async (row, problem) => {
    const [first] = await problemsOf(`- {${row.includes('name: ') ? '' : 'name: a, '}${row}}`, { documents })
    expect(first).toEqual(typeof problem === 'string' ? problem : expect.stringMatching(problem))
  })

  const later = documentsOf(`
- { name: acme/later, kind: image, input: { seed: { type: integer }, quality: false } }
- { name: acme/film, kind: video, input: { duration: { type: integer } } }`)

  it.each([
    [
      'a key of the matrix becomes a parameter',
      'runs: [{name: "{seed}", kind: image, prompt: x, matrix: {seed: [1]}}]',
      { prompt: 'x', seed: 1 },
    ],
    [
      'a default is not a parameter any more',
      'defaults: {kind: image, quality: high}\nruns: [{name: a, prompt: x}]',
      { prompt: 'x' },
    ],
    [
      'a parameter gets another type',
      'runs: [{name: a, kind: video, prompt: x, duration: 5}]',
      { prompt: 'x', duration: 5 },
    ],
  ])('has the identity that it had before its document was known when %s', async (_, rows, input) => {
    const text = `models: {image: acme/later, video: acme/film}\n${rows}`
    const [before] = await inputsOf(text, [])
    expect(before).not.toEqual(input)
    expect(await entriesOf(text, { documents: later })).toMatchObject([
      { input, identities: [input, before] },
    ])
  })
})

describe('a matrix', () => {
  it('sets the parameters of the model, with the types of its schema', async () => {
    const text = `defaults: {model: acme/still-2, prompt: x}
runs:
  - {name: "{steps}-{tiled}", matrix: {steps: [5, 10], tiled: [true]}}
  - {name: "{n}", steps: "{n}", matrix: {n: [5], tags: [[a, b]]}}`
    expect((await entriesOf(text, { documents })).map(({ name, input }) => [name, input])).toEqual([
      ['5-true', { prompt: 'x', steps: 5, tiled: true }],
      ['10-true', { prompt: 'x', steps: 10, tiled: true }],
      ['5', { prompt: 'x', steps: 5, tags: ['a', 'b'] }],
    ])
  })

  it.each([
    [
      'defaults: {frames: 5}',
      'output: "{model}.png", matrix: {model: [acme/still-2, acme/cinema-3], seed: [7]}',
    ],
    [
      'defaults: {frames: 5}',
      'output: "{m}.png", model: "acme/{m.text}-{m.n}", matrix: {m: [{name: a, text: still, n: 2}, {name: b, text: cinema, n: 3}], seed: [7]}',
    ],
    [
      'defaults: {model: "acme/{m}", frames: 5}',
      'output: "{m}.png", matrix: {m: [still-2, cinema-3], seed: [7]}',
    ],
  ])('with several models has the fields of each: %s, %s', async (defaults, row) => {
    const text = `${defaults}\nruns: [{prompt: x, ${row}}]`
    expect((await entriesOf(text, { documents })).map(({ model, input }) => [model, input])).toEqual([
      ['acme/still-2', { prompt: 'x', seed: 7 }],
      ['acme/cinema-3', { prompt: 'x', frames: 5, seed: '7' }],
    ])
  })
})

// Recorded before models had documents: another hash would create, and charge, every run again.
it.each([
  ['shop', 23, '050e9a715b72522d6f5297a87d73e12b5d1cd94a5d13b74030565a999309f179'],
  ['sprites', 23, '4414e97655ec631e8c415707440a95d36b644a1dc2c9be0261615d33eb1d5972'],
  ['trailer', 21, '0b53e247091ad3f1d7be234b905b143e6620d3778522f167cbf84bced042ebf8'],
])('the manifest of the example %s sends what it has always sent', async (example, runs, hash) => {
  const [name, folder] = [`${example}.yaml`, join(ROOT, 'examples', example)]
  const result = await read(readFileSync(join(folder, name)), { name, folder })
  const entries = result.ok ? result.manifest.entries : expect.unreachable()
  const rows = entries.map(
    ({ name, kind, output, model, identities }) =>
      `${name} ${kind} ${output} ${identityOf(model ?? 'acme/x', identities[0])}`,
  )
  expect(rows).toHaveLength(runs)
  expect(createHash('sha256').update(rows.join('\n')).digest('hex')).toBe(hash)
})

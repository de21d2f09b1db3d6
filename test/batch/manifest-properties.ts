/** What holds for every manifest. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { validatorOf } from '../support/schemas.js'
import { folderWith, read } from './folder.js'

/** Reading any text, in any format, ends with rows or with problems that have a place in it. */
export async function readsAnyText(numRuns: number): Promise<void> {
  const folder = folderWith()
  const piece = fc.constantFrom(
    ...['runs:', '- ', '  ', '\n', 'name', ': ', 'kind: image', 'prompt', '"', "'", ',', '{', '}', '[', ']'],
    ...[
      '&a ',
      '*a',
      '<<: ',
      '!x ',
      '|',
      '>',
      '# ',
      '---',
      '%',
      '\t',
      '\r\n',
      '?',
      '\\',
      'null',
      '1e999',
      '\ud800',
    ],
    ...['models: {image: a/b}', 'defaults:', 'count: 2', 'output: a.png', '{ext}', '../', 'é', '\u0000'],
  )
  const text = fc.oneof(
    fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join('')),
    fc.string({ unit: 'binary' }),
    fc.json(),
  )
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.constantFrom('a.yaml', 'a.json', 'a.jsonl', 'a.csv', 'a'),
      async (given, name) => {
        const result = await read(given, { name, folder })
        if (result.ok) return
        const lines = given.split('\n').length + given.split('\r').length
        for (const { line } of result.problems) expect(line >= 1 && line <= lines).toBe(true)
      },
    ),
    { numRuns },
  )
}

/** The same for any JSON as a matrix. */
export async function readsAnyMatrix(numRuns: number): Promise<void> {
  const folder = folderWith()
  const text = fc.constantFrom(
    '{a}',
    '{a.b}',
    '{',
    '}',
    '{a',
    'x',
    '{ a }',
    '{name}',
    '{ext}',
    '/',
    '..',
    '\u0000',
    '{A:}',
  )
  const texts = fc.array(text, { maxLength: 4 }).map((parts) => parts.join(''))
  const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({ a: ['x', { b: 1 }] }), texts)
  const run = fc.record({
    name: texts,
    prompt: json,
    output: texts,
    matrix: json,
    exclude: json,
    image_urls: json,
  })
  await fc.assert(
    fc.asyncProperty(run, async (made) => {
      const given = JSON.stringify([{ kind: 'image', ...made }], null, 1)
      const result = await read(given, { name: 'a.json', folder })
      const lines = given.split('\n').length
      for (const { line } of result.ok ? [] : result.problems) expect(line).toBeLessThanOrEqual(lines)
    }),
    { numRuns },
  )
}

/** The published schema. */
export const schemaAccepts = validatorOf('manifest')

/** The published schema accepts each matrix that the validator accepts. Resolves with the number of those. */
export async function acceptsMatrices(numRuns: number): Promise<number> {
  const folder = folderWith()
  const list = (...values: unknown[]) =>
    fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 2 })
  const free = list(
    'high',
    'image',
    '5',
    5,
    1.5,
    true,
    ' ',
    'x/y',
    { name: 'a', b: 1 },
    { b: 'high' },
    null,
    ['a'],
  )
  const row = fc.record(
    {
      prompt: fc.constantFrom('x', '{a}', '{a.b}', '{A}', null, 5),
      quality: fc.constantFrom('high', '{a}', '{a.b}', null),
      kind: fc.constantFrom('image', 'video', '{a}', null),
      model: fc.constantFrom('acme/x', 'acme/{a}', '{a}'),
      duration: fc.constantFrom('5', 5, '{a}'),
      input: fc.constantFrom({ x: '{a}' }, null),
      image_urls: fc.constantFrom([], ['https://a.example/{a}'], null),
    },
    { requiredKeys: ['prompt'] },
  )
  const matrix = fc.record(
    {
      a: free,
      b: free,
      quality: list('high', 'basic', '{a}'),
      kind: list('image', 'video', '{a}'),
      prompt: list('x', 'x {a}', 5),
      model: list('acme/x', 'acme/{a}', '{a}'),
      duration: list('5', 5, '{a}'),
      input: list({ x: '{a}' }, { y: 1 }, {}),
      image_urls: list([], ['https://a.example/{a}']),
      name: free,
    },
    { requiredKeys: ['a'] },
  )
  const few = fc.dictionary(fc.constantFrom('a', 'b', 'quality', 'c'), fc.constantFrom('high', 5, null), {
    maxKeys: 2,
  })
  const some = (from: object, keys: readonly string[]) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)))
  const keys = fc.subarray(
    ['quality', 'kind', 'prompt', 'model', 'duration', 'input', 'image_urls', 'b', 'name'],
    { maxLength: 2 },
  )
  const run = fc
    .record({
      row,
      matrix,
      own: keys,
      keys,
      exclude: fc.option(fc.array(few, { maxLength: 2 }), { freq: 2 }),
    })
    .map((made) => ({
      name: '{a}-{b}-{quality}-{kind}-{prompt}',
      prompt: made.row.prompt,
      ...some(made.row, made.own),
      matrix: { a: made.matrix.a, ...some(made.matrix, made.keys) },
      exclude: made.exclude,
    }))
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(run, fc.boolean(), async (made, hasDefaults) => {
      const runs = [hasDefaults ? made : { kind: 'image', ...made }]
      const manifest = hasDefaults ? { defaults: { kind: 'image', quality: 'high' }, runs } : runs
      const result = await read(JSON.stringify(manifest), { name: 'm.json', folder })
      if (!result.ok) return
      accepted += 1
      expect(schemaAccepts(manifest), JSON.stringify(schemaAccepts.errors)).toBe(true)
    }),
    { numRuns },
  )
  return accepted
}

/** What holds for every manifest. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { anyCharacter } from '../support/any-character.js'
import { validatorOf } from '../support/schemas.js'
import { folderWith, read } from './folder.js'

/** Reading any text, in any format, ends with rows or with problems that have a place in it. */
export async function readsAnyText(numRuns: number): Promise<void> {
  const folder = folderWith()
  const words =
    'runs: - name : kind: image prompt models: {image: a/b} defaults: count: 2 output: a.png {ext} ../ é , { } [ ] " \' &a *a <<: !x | > # --- % ? \\ null 1e999'
  const piece = fc.oneof(
    fc.constantFrom(...words.split(' ')),
    fc.constantFrom(' ', '  ', '\n', '\t', '\r\n', '\ud800', '\0'),
  )
  const text = fc.oneof(
    fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join('')),
    fc.string({ unit: anyCharacter }),
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
  const text = fc.constantFrom(...'{a} {a.b} { } {a x {name} {ext} / .. {A:}'.split(' '), '{ a }', '\0')
  const texts = fc.array(text, { maxLength: 4 }).map((parts) => parts.join(''))
  const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({ a: ['x', { b: 1 }] }), texts)
  const run = fc.record({
    ...{ name: texts, prompt: json, output: texts, matrix: json, exclude: json, image_urls: json },
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

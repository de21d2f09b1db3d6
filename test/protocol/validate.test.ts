import { beforeEach, expect, it, vi } from 'vitest'
import { writeJson } from '../../src/protocol/json.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import { builtInSchema } from '../../src/protocol/models.js'
import { didYouMean, MAX_COMPARED, nearest } from '../../src/protocol/text.js'
import { inputProblems, MAX_PROBLEMS } from '../../src/protocol/validate.js'
import { PREVIEW_MODELS } from '../../src/service/models/served-model.js'
import { parseCreate, readCreate } from '../../src/service/rules/create-request.js'
import { Refusal } from '../../src/service/rules/refusal.js'
import { expectLinear } from '../support/growth.js'

/** Pairs of letters that were compared. */
const work = vi.hoisted(() => ({ done: 0 }))

// Counts, and calls the real function.
vi.mock('leven', async (importOriginal) => {
  const { default: leven } = await importOriginal<typeof import('leven')>()
  return {
    default: (one: string, other: string) => {
      work.done += one.length * other.length
      return leven(one, other)
    },
  }
})

beforeEach(() => {
  work.done = 0
})

const numbered = (count: number, length: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`.padEnd(length, 'y'))

it('a check ends after the first problems, in the order of the input', () => {
  const items = { type: 'string', enum: ['red', 'blue'] } as const
  const properties = { colours: { type: 'array', description: '', items } } as const
  const schema = { ...builtInSchema('image'), required: ['prompt'], properties }
  const problems = inputProblems(schema, { colours: ['red', ...Array(5_000).fill('bleu')] })
  expect(problems).toHaveLength(MAX_PROBLEMS)
  const parameters = problems.slice(0, 5).map(({ parameter }) => parameter)
  expect(parameters).toEqual(['prompt', 'colours/1', 'colours/2', 'colours/3', 'colours/4'])
  expect(problems[1]?.message).toBe('must be one of red, blue, not "bleu" (did you mean "blue"?)')
})

it.each<[name: string, inputOf: (size: number) => object]>([
  ['unknown parameters', (size) => Object.fromEntries(numbered(size, 8, 'p').map((name) => [name, name]))],
  ['half surrogate pairs', (size) => ({ prompt: '\ud83e'.repeat(size), quality: '\ud83e'.repeat(size) })],
  ['lists in lists', (size) => ({ prompt: 'x', extra: Array(size).fill([[1], [2]]) })],
])('the time of a create is linear in its body: %s', async (_, inputOf) => {
  const create = (size: number) => {
    const body = Buffer.from(writeJson({ model: 'rushes/preview-image', input: inputOf(size) }))
    for (let times = 0; times < 5; times++)
      try {
        readCreate(
          parseCreate(body),
          PREVIEW_MODELS.map(({ document }) => document),
        )
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal)
      }
  }
  create(100)
  await expectLinear(3_000, create)
})

it.each<[title: string, word: string, candidates: readonly string[]]>([
  ['many models', 'acme/still-1', numbered(20_000, 14, 'acme/still-')],
  ['long candidates', 'x'.repeat(90_000), numbered(50, 100_000, 'a')],
  ['a long word', 'x'.repeat(1_000_000), numbered(1_000, 12, 'a')],
])('the work of a suggestion has a bound for %s', (_, word, candidates) => {
  didYouMean(word, candidates)
  expect(work.done).toBeLessThanOrEqual(MAX_COMPARED)
})

it('the work of a suggestion skips candidates whose length differs too much, however long they are', () => {
  expect(nearest('statsu', [...numbered(100, 100_000, 'a'), 'status'])).toBe('status')
})

it('a document with thousands of wrong factors gets short problems', () => {
  const factors = Object.fromEntries(numbered(9_000, 8, 'x').map((value) => [value, 1]))
  const style = { type: 'string', enum: numbered(1_000, 60, 'a') }
  const messages: string[] = []
  const price = { run: 1, factors: { style: factors } }
  const document = { name: 'a/b', kind: 'image', input: { style }, price }
  readModelDocument(document, (_, message) => messages.push(message))
  expect(messages).toHaveLength(9_000)
  expect(Math.max(...messages.map(({ length }) => length))).toBeLessThan(1_200)
})

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { identityOf, summaryOf, withoutData } from '../../src/protocol/identity.js'
import { MediaSummary } from '../../src/protocol/media.js'
import { anyCharacter } from '../support/any-character.js'

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')
const base64 = (data: string) => Buffer.from(data).toString('base64')
const HELLO = `data:image/png;base64,${base64('hello')}`

it.each<[string, string | Uint8Array, string]>([
  [HELLO, 'hello', 'image/png'],
  ['data:text/plain,hello%20there', 'hello there', 'text/plain'],
  ['data:,hello', 'hello', 'text/plain'],
  ['DATA:Image/PNG;charset=x;BASE64,aGVsbG8=', 'hello', 'image/png'],
  ['data:image/png;base64,aGVs%62G8%3D', 'hello', 'image/png'],
  ['data:image/png;base64,-_-_', Buffer.from([0xfb, 0xff, 0xbf]), 'image/png'],
  ['data:image/svg+xml;utf8,<svg a="%">', '<svg a="%">', 'image/svg+xml'],
  ['data:image/png,%89PNG', Buffer.from([0x89, 0x50, 0x4e, 0x47]), 'image/png'],
  ['data:,é%C3%A9%', 'éé%', 'text/plain'],
])('a data: URL is summed up by its bytes and type: %s', (url, content, type) => {
  expect(summaryOf(url)).toEqual({
    sha256: sha256(content),
    bytes: Buffer.from(content).byteLength,
    content_type: type,
  })
})

it.each([
  ...[
    'https://x.example/data:',
    'a fox',
    '',
    'run:r1#2',
    'data:',
    'Data: a red fox',
    'data:image/png;base64',
  ],
  'data:image/png;base64,a!b=',
  'data:;base64,abcde',
  'data:;base64,a=bc',
  'data:,\ud800',
  'data:\u212a,x',
])('a data: URL is not %j', (text) => {
  expect(summaryOf(text)).toBeUndefined()
})

it('the stored input has a summary for each data: URL in a media parameter, and all other texts whole', () => {
  const input = { prompt: HELLO, note: 'data:,x', deep: [{ prompt: 'data:,x', n: [7n] }], n: null }
  expect(withoutData({ ...input, image_urls: ['data:,x', 'https://x', 'data: no comma'] })).toEqual({
    ...input,
    image_urls: [summaryOf('data:,x'), 'https://x', 'data: no comma'],
  })
})

it('the stored input has a summary for each data: URL in a field of an object that its name makes media, and the identity of before', () => {
  const withUrl = (url: unknown) => ({
    elements: [
      { text: HELLO, image_url: url, reference_image_urls: [url, 'https://x'], mask: { voice: url } },
    ],
  })
  expect(withoutData(withUrl(HELLO), ['voice'])).toEqual(withUrl(summaryOf(HELLO)))
  expect(identityOf('a/b', withUrl(HELLO)).slice(0, 16)).toBe('374e0829d5f45c4d')
})

it.each([null, 'data:,x', ['data:,x'], 7])('the stored input of another type is unchanged: %j', (value) => {
  expect(withoutData(value)).toEqual(value)
})

const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, each]) => [name, reversed(each)])
  return Object.fromEntries(fields.reverse())
}

it('the identity of a request does not depend on the order of the fields', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
      expect(identityOf('a/b', reversed(input))).toBe(identityOf('a/b', input))
    }),
  )
})

it('the identity of a request depends on everything else', () => {
  const input = { prompt: 'x', image_urls: ['data:,1'] }
  const identities = [
    identityOf('a/b', input),
    identityOf('a/c', input),
    identityOf('a/b', { ...input, image_urls: ['data:,1', 'data:,1'] }),
    identityOf('a/b', { prompt: 'x' }),
    identityOf('a/b', { ...input, quality: 'high' }),
    identityOf('a/b', { ...input, image_urls: 'data:,1' }),
  ]
  expect(new Set(identities).size).toBe(identities.length)
})

// Lock files in repositories contain these: another hash would create their rows again.
it.each<[string, string, object]>([
  ['e035f70ee0a7abdc', 'acme/still-1', { prompt: 'a red fox' }],
  ...[HELLO, summaryOf(HELLO), 'DATA:Image/PNG;charset=x;BASE64, aGVs\nbG8'].map(
    (url): [string, string, object] => [
      '01453d5d8d09199d',
      'acme/still-1',
      { prompt: 'a fox', image_urls: [url] },
    ],
  ),
  [
    '4669061aa1f02979',
    'acme/still-1',
    { prompt: 'a fox', image_urls: ['data:image/svg+xml,%3Csvg%20width=%22100%25%22%3E%C3%A9'] },
  ],
  [
    '42bc3a06161f2d56',
    'acme/other',
    { text: 'x', seed: 42, scale: 7.5, nested: { list: [1, true, null] }, image_urls: [HELLO] },
  ],
])('the identity of a request stays %s for %s %j', (identity, model, input) => {
  expect(identityOf(model, input).slice(0, 16)).toBe(identity)
})

/** Short, so that texts which mean the same are met often. */
const fewBytes = fc.uint8Array({ maxLength: 2 }).map((bytes) => Buffer.from(bytes))
const type = fc.constantFrom('image/png', 'image/jpeg')
const percent = (bytes: Buffer) => bytes.toString('hex').replace(/../g, '%$&')

/** A value of `image_urls` with what it stands for. */
const image: fc.Arbitrary<readonly [value: unknown, content: string]> = fc
  .tuple(type, fewBytes, fc.constantFrom('base64', 'base64url', 'percent', 'summary', 'literal', 'text'))
  .map(([mime, bytes, form]) => {
    const content = `${mime} ${bytes.toString('hex')}`
    const literal = { sha256: sha256(bytes), bytes: bytes.byteLength, content_type: mime }
    const text = `${mime};base64,${bytes.toString('base64')}`
    if (form === 'summary') return [new MediaSummary(literal.sha256, literal.bytes, mime), content]
    if (form === 'percent') return [`data:${mime},${percent(bytes)}`, content]
    if (form === 'literal') return [literal, JSON.stringify(literal)]
    if (form === 'text') return [text, text]
    return [`data:${mime};base64,${bytes.toString(form)}`, content]
  })

/** Texts that look like data: URLs, and objects that look like summaries, in every field. */
const inputs = fc
  .record({
    prompt: fc.oneof(
      image.map(([value]) => value),
      fc.string({ unit: anyCharacter, maxLength: 2 }).map((text) => `data:${text}`),
      fc.constantFrom('Data: a red fox', 'Data: a blue whale', 'data:,', 'data:', ''),
    ),
    images: fc.array(image, { maxLength: 2 }),
  })
  .map(({ prompt, images }) => ({
    input: { prompt, image_urls: images.map(([value]) => value) },
    meaning: JSON.stringify([prompt, images.map(([, content]) => content)]),
  }))

it('two inputs have one identity exactly if they mean the same', () => {
  fc.assert(
    fc.property(fc.array(inputs, { minLength: 2, maxLength: 30 }), (several) => {
      const meanings = new Map<string, string>()
      for (const { input, meaning } of several) {
        const identity = identityOf('a/b', input)
        expect(meanings.get(identity) ?? meaning).toBe(meaning)
        meanings.set(identity, meaning)
      }
      expect(meanings.size).toBe(new Set(several.map(({ meaning }) => meaning)).size)
    }),
  )
})

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { identityOf, summaryOf, withoutData } from '../../src/journal/identity.js'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

describe('a data: URL', () => {
  it.each<[string, string, string]>([
    [`data:image/png;base64,${Buffer.from('hello').toString('base64')}`, 'hello', 'image/png'],
    ['data:text/plain,hello%20there', 'hello there', 'text/plain'],
    ['data:,hello', 'hello', 'text/plain'],
    ['DATA:Image/PNG;charset=x;BASE64,aGVsbG8=', 'hello', 'image/png'],
    ['data:image/svg+xml;utf8,<svg a="%">', '<svg a="%">', 'image/svg+xml'],
  ])('%s', (url, content, type) => {
    expect(summaryOf(url)).toEqual({
      sha256: sha256(content),
      bytes: Buffer.byteLength(content),
      content_type: type,
    })
  })

  it.each(['https://x.example/data:', 'a fox', '', 'run:r1#2'])('is not %j', (text) => {
    expect(summaryOf(text)).toBeUndefined()
  })

  it('is taken out wherever it stands, and nothing else is', () => {
    expect(
      withoutData({
        prompt: 'a',
        image_urls: ['data:,x', 'https://x'],
        deep: [{ image: 'data:,x' }],
        n: null,
      }),
    ).toEqual({
      prompt: 'a',
      image_urls: [summaryOf('data:,x'), 'https://x'],
      deep: [{ image: summaryOf('data:,x') }],
      n: null,
    })
  })
})

describe('the identity of a request', () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, each]) => [name, shuffled(each)]),
    )
  }

  it('does not depend on the order of the fields', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        expect(identityOf('a/b', shuffled(input))).toBe(identityOf('a/b', input))
      }),
    )
  })

  it('depends on everything else', () => {
    const same = ['a/b', { prompt: 'x', image_urls: ['data:,1'] }] as const
    const others: readonly (readonly [string, object])[] = [
      ['a/c', same[1]],
      ['a/b', { prompt: 'y', image_urls: ['data:,1'] }],
      ['a/b', { prompt: 'x', image_urls: ['data:,2'] }],
      ['a/b', { prompt: 'x', image_urls: ['data:,1', 'data:,1'] }],
      ['a/b', { prompt: 'x' }],
      ['a/b', { prompt: 'x', image_urls: ['data:,1'], quality: 'high' }],
    ]
    const identities = [same, ...others].map(([model, input]) => identityOf(model, input))
    expect(new Set(identities).size).toBe(identities.length)
  })
})

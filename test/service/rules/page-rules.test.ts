import { describe, expect, test } from 'vitest'
import { bestCoding, pagePolicy } from '../../../src/service/rules/page-rules.js'

test.each<[accepts: string | undefined, best: string | undefined]>([
  [undefined, undefined],
  ['', undefined],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip', 'gzip'],
  ['GZIP;q=1.0', 'gzip'],
  ['br;q=0, gzip;q=0.5', 'gzip'],
  ['br; q=0.1', 'br'],
  ['*', 'br'],
  ['*;q=0', undefined],
  ['br;q=0, *', 'gzip'],
  ['identity', undefined],
  ['brotli, xgzip', undefined],
  ['br;q=x', 'br'],
])('chooses the best encoding for Accept-Encoding: %s', (accepts, best) =>
  expect(bestCoding(accepts, ['gzip', 'br'])).toBe(best),
)

test('chooses only an encoding that exists', () => {
  expect(bestCoding('br, gzip', ['gzip'])).toBe('gzip')
  expect(bestCoding('br, gzip', [])).toBeUndefined()
})

describe('the content security policy', () => {
  test('allows no inline script, and no other origin', () => {
    const policy = pagePolicy([undefined])
    expect(policy).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:;",
    )
    expect(policy).not.toMatch(/unsafe|\*|http/)
  })

  test('allows images and videos of the public URL and of the bucket', () => {
    const policy = pagePolicy([
      'https://runs.example/prefix',
      'https://bucket.s3.example:9000',
      'https://runs.example',
    ])
    for (const name of ['img-src', 'media-src'])
      expect(policy).toContain(
        `${name} 'self' blob: data: https://runs.example https://bucket.s3.example:9000;`,
      )
    expect(policy).toContain("connect-src 'self';")
  })

  test('leaves out values that are not URLs', () =>
    expect(pagePolicy(['a b; script-src *'])).toBe(pagePolicy([])))
})

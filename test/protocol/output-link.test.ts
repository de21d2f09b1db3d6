import { describe, expect, it } from 'vitest'
import { outputOfLink } from '../../src/protocol/output-link.js'

const PLAIN = 'https://cdn.example/run/1.png'

describe('links to outputs', () => {
  it.each([
    ['the form of S3', '?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=1&X-Amz-Expires=9&X-Amz-Signature=ab'],
    ['the old form of S3', '?AWSAccessKeyId=a&Expires=1&Signature=b%2Fc%3D'],
    ['CloudFront', '?Expires=1&Policy=p&Signature=s&Key-Pair-Id=k'],
    ['Google Cloud Storage', '?X-Goog-Credential=c&X-Goog-SignedHeaders=host&X-Goog-Signature=s'],
    ['Azure', '?sv=2024-11-04&se=2026-01-01T00%3A00%3A00Z&sr=b&sp=r&sig=a%3D'],
    ['Aliyun', '?OSSAccessKeyId=a&Expires=1&Signature=s&security-token=t'],
    ['Discord', '?ex=1&is=2&hm=3'],
    ['a token that expires', '?token=abc&expires=1'],
    ['a fragment', '#t=1'],
  ])('are equal however they are signed: %s', (_, query) => {
    expect(outputOfLink(`${PLAIN}${query}`)).toBe(outputOfLink(PLAIN))
    const file = 'https://api.example/file?id=1'
    expect(outputOfLink(`${file}${query.replace('?', '&')}`)).toBe(outputOfLink(file))
  })

  it.each([
    ['https://cdn.example/file?id=1', 'https://cdn.example/file?id=2'],
    ['https://a.example/1.png', 'https://b.example/1.png'],
    ['https://a.example/1.png', 'http://a.example/1.png'],
    ['https://a.example/1.png', 'https://a.example:8443/1.png'],
    ['https://a.example/1.png', 'https://a.example/2.png'],
    // Without the parameters beside them, these are no signature.
    ['https://a.example/file?token=1', 'https://a.example/file?token=2'],
    ['https://a.example/file?st=1', 'https://a.example/file?st=2'],
    ['https://a.example/file?id=1&id=2', 'https://a.example/file?id=1'],
  ])('differ for two outputs: %s, %s', (one, other) => {
    expect(outputOfLink(one)).not.toBe(outputOfLink(other))
  })

  it('do not depend on the order of the parameters', () => {
    expect(outputOfLink(`${PLAIN}?a=1&b=2&sig=x`)).toBe(outputOfLink(`${PLAIN}?sig=y&b=2&a=1`))
  })

  it('keeps a text that is no URL', () => {
    expect(outputOfLink('')).toBe('')
  })
})

import { describe, expect, it } from 'vitest'
import { continuationOf, type FileVersion, versionOf } from '../../src/download/resume-plan.js'

const VERSION: FileVersion = { etag: '"a"', totalBytes: 100_000 }
const headersOf = (given: Readonly<Record<string, string>>) => (name: string) => given[name]

describe('a download can be resumed', () => {
  it.each<[string, Record<string, string>, boolean]>([
    ['with a strong ETag and a length', {}, true],
    ['with the encoding "identity"', { 'content-encoding': 'Identity' }, true],
    ['not without an ETag', { etag: '' }, false],
    ['not with a weak ETag', { etag: 'W/"a"' }, false],
    ['not with an ETag without quotes', { etag: 'a' }, false],
    ['not with an ETag that no header can contain', { etag: '"\n"' }, false],
    ['not without a valid length', { 'content-length': '-1' }, false],
    ['not with an encoding', { 'content-encoding': 'gzip' }, false],
  ])('%s', (_, given, isKnown) => {
    const header = headersOf({ etag: '"a"', 'content-length': '100000', ...given })
    expect(versionOf(header)).toEqual(isKnown ? VERSION : undefined)
  })
})

describe('the response to a request for the rest', () => {
  const REST = 'bytes 50000-99999/100000'
  it.each<[string, number, Record<string, string>, string]>([
    ['is appended', 206, {}, 'append'],
    ['is not appended without an ETag', 206, { etag: '' }, 'mismatch'],
    ['is not appended with a weak ETag', 206, { etag: 'W/"a"' }, 'mismatch'],
    ['is not appended with another ETag', 206, { etag: '"b"' }, 'mismatch'],
    ['is not appended if it is encoded', 206, { 'content-encoding': 'gzip' }, 'mismatch'],
    ['is the whole file', 200, {}, 'restart'],
    ['has no range', 206, { 'content-range': '' }, 'mismatch'],
    ['has several ranges', 206, { 'content-range': 'bytes 1-2/9, 4-5/9' }, 'mismatch'],
    ['starts elsewhere', 206, { 'content-range': 'bytes 40000-99999/100000' }, 'mismatch'],
    ['ends too early', 206, { 'content-range': 'bytes 50000-80000/100000' }, 'mismatch'],
    ['is of a longer file', 206, { 'content-range': 'bytes 50000-109999/110000' }, 'mismatch'],
    ['is empty', 416, { 'content-range': 'bytes */100000' }, 'mismatch'],
  ])('%s', (_, status, given, continuation) => {
    const header = headersOf({ etag: '"a"', 'content-range': REST, ...given })
    expect(continuationOf(VERSION, 50_000, { status, header })).toBe(continuation)
  })
})

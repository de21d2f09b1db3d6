import { describe, expect, it } from 'vitest'
import {
  continuationOf,
  metadataOf,
  type PartMetadata,
  resumePlan,
  totalOf,
} from '../../src/download/resume-plan.js'

const DATE = 'Tue, 21 Jan 2020 08:00:00 GMT'
const SECOND_LATER = 'Tue, 21 Jan 2020 08:00:01 GMT'
const ABOUT: PartMetadata = { etag: '"a"', totalBytes: 100_000 }
const headersOf = (given: Readonly<Record<string, string>>) => (name: string) => given[name]

describe('the plan', () => {
  const fromHalf = (ifRange: string) => ({ kind: 'resume', bytes: 50_000, ifRange })
  it.each<[string, PartMetadata | undefined, number, object]>([
    ['nothing is there', undefined, 0, { kind: 'restart' }],
    ['nothing has arrived', ABOUT, 0, { kind: 'restart' }],
    ['nothing is known of it', undefined, 50_000, { kind: 'restart' }],
    ['half of it', ABOUT, 50_000, fromHalf('"a"')],
    ['half, of unknown length', { etag: '"a"' }, 50_000, fromHalf('"a"')],
    ['all of it or more', ABOUT, 100_000, { kind: 'restart' }],
    ['a weak ETag', { ...ABOUT, etag: 'W/"a"' }, 50_000, { kind: 'restart' }],
    ['an ETag without quotes', { ...ABOUT, etag: 'a' }, 50_000, { kind: 'restart' }],
    ['an ETag that no header can hold', { ...ABOUT, etag: '"\n"' }, 50_000, { kind: 'restart' }],
    ['a date', { lastModified: DATE }, 50_000, fromHalf(DATE)],
    ['a strong ETag and a date', { etag: '"a"', lastModified: DATE }, 50_000, fromHalf('"a"')],
    ['a weak ETag and a date', { etag: 'W/"a"', lastModified: DATE }, 50_000, { kind: 'restart' }],
    ['no validator', { totalBytes: 100_000 }, 50_000, { kind: 'restart' }],
  ])('%s', (_, metadata, bytes, plan) => {
    expect(resumePlan(metadata, bytes)).toMatchObject(plan)
  })
})

describe('what an answer tells of its file', () => {
  it.each<[string, Record<string, string>, PartMetadata | undefined]>([
    ['an ETag', { etag: '"a"', 'content-length': '7' }, { etag: '"a"', totalBytes: 7 }],
    ['nothing', {}, {}],
    ['a length that makes no sense', { 'content-length': '-1' }, {}],
    ['a date', { 'last-modified': DATE, date: SECOND_LATER }, { lastModified: DATE }],
    ['a date of this very second', { 'last-modified': DATE, date: DATE }, {}],
    ['a date, at no known time', { 'last-modified': DATE }, {}],
    ['no date', { 'last-modified': 'yesterday', date: DATE }, {}],
    ['an encoding', { etag: '"a"', 'content-encoding': 'gzip' }, undefined],
    ['no encoding', { etag: '"a"', 'content-encoding': 'Identity' }, { etag: '"a"' }],
  ])('%s', (_, given, about) => {
    expect(metadataOf(headersOf(given))).toEqual(about)
  })
})

describe('the answer to a request for the rest', () => {
  const plan = { kind: 'resume', bytes: 50_000, ifRange: '"a"', metadata: ABOUT } as const
  const the = (range: string, more: Record<string, string> = { etag: '"a"' }) => ({
    'content-range': range,
    ...more,
  })
  const REST = 'bytes 50000-99999/100000'
  it.each<[string, number, Record<string, string>, string]>([
    ['the rest', 206, the(REST), 'append'],
    ['the rest of who knows what', 206, the(REST, {}), 'mismatch'],
    ['the rest of something of unknown length', 206, the('bytes 50000-99999/*'), 'append'],
    ['the whole', 200, {}, 'restart'],
    ['another place', 206, the('bytes 40000-99999/100000'), 'mismatch'],
    ['another length', 206, the('bytes 50000-109999/110000'), 'mismatch'],
    ['less than the rest', 206, the('bytes 50000-80000/100000'), 'mismatch'],
    ['nothing, backwards', 206, the('bytes 50000-49999/*'), 'mismatch'],
    ['another name', 206, the(REST, { etag: '"b"' }), 'mismatch'],
    ['the same name, now weak', 206, the(REST, { etag: 'W/"a"' }), 'mismatch'],
    ['something encoded', 206, the(REST, { etag: '"a"', 'content-encoding': 'gzip' }), 'mismatch'],
    ['no range', 206, {}, 'mismatch'],
    ['nonsense', 206, the('bytes -1-x/y'), 'mismatch'],
    ['several ranges', 206, { 'content-type': 'multipart/byteranges' }, 'mismatch'],
    ['nothing', 416, {}, 'mismatch'],
  ])('%s', (_, status, given, continuation) => {
    expect(continuationOf(plan, { status, header: headersOf(given) })).toBe(continuation)
  })

  it.each<[string, PartMetadata, number, Record<string, string>, string]>([
    ['no date', { lastModified: DATE }, 206, the(REST, {}), 'append'],
    ['the same date', { lastModified: DATE }, 206, the(REST, { 'last-modified': DATE }), 'append'],
    [
      'another date, by a host that heeds no If-Range',
      { lastModified: DATE },
      206,
      the(REST, { 'last-modified': SECOND_LATER }),
      'mismatch',
    ],
    [
      'another date of the same name',
      { etag: '"a"', lastModified: DATE },
      206,
      the(REST, { etag: '"a"', 'last-modified': SECOND_LATER }),
      'append',
    ],
    ['the end', { etag: '"a"' }, 416, the('bytes */50000', { etag: '"a"' }), 'mismatch'],
  ])('where the length was not known: %s', (_, metadata, status, given, continuation) => {
    expect(continuationOf({ ...plan, metadata }, { status, header: headersOf(given) })).toBe(continuation)
  })

  it('tells the length of the whole', () => {
    expect(['bytes 5-9/10', 'bytes 5-9/*', 'x'].map((range) => totalOf(headersOf(the(range))))).toEqual([
      10,
      undefined,
      undefined,
    ])
  })
})

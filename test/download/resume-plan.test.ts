import { describe, expect, it } from 'vitest'
import { type About, aboutOf, continuationOf, planOf, totalOf } from '../../src/download/resume-plan.js'

const DATE = 'Tue, 21 Jan 2020 08:00:00 GMT'
const SECOND_LATER = 'Tue, 21 Jan 2020 08:00:01 GMT'
const ABOUT: About = { etag: '"a"', totalBytes: 100_000, contentType: 'image/png' }
const headersOf = (given: Readonly<Record<string, string>>) => (name: string) => given[name]

describe('the plan', () => {
  const fromHalf = (ifRange: string) => ({ kind: 'from', bytes: 50_000, ifRange })
  it.each<[string, About | undefined, number, object]>([
    ['nothing is there', undefined, 0, { kind: 'anew' }],
    ['nothing has arrived', ABOUT, 0, { kind: 'anew' }],
    ['nothing is known of it', undefined, 50_000, { kind: 'anew' }],
    ['too little to say what it is', ABOUT, 4_099, { kind: 'anew' }],
    ['half of it', ABOUT, 50_000, fromHalf('"a"')],
    ['half, of unknown length', { etag: '"a"' }, 50_000, fromHalf('"a"')],
    ['all of it', ABOUT, 100_000, { kind: 'whole' }],
    ['all of something small', { ...ABOUT, totalBytes: 10 }, 10, { kind: 'whole' }],
    ['more than all', ABOUT, 100_001, { kind: 'anew' }],
    ['a weak ETag', { ...ABOUT, etag: 'W/"a"' }, 50_000, { kind: 'anew' }],
    ['an ETag without quotes', { ...ABOUT, etag: 'a' }, 50_000, { kind: 'anew' }],
    ['an ETag that no header can hold', { ...ABOUT, etag: '"\n"' }, 50_000, { kind: 'anew' }],
    ['a date', { lastModified: DATE }, 50_000, fromHalf(DATE)],
    ['a strong ETag and a date', { etag: '"a"', lastModified: DATE }, 50_000, fromHalf('"a"')],
    ['a weak ETag and a date', { etag: 'W/"a"', lastModified: DATE }, 50_000, { kind: 'anew' }],
    ['no validator', { totalBytes: 100_000 }, 50_000, { kind: 'anew' }],
  ])('%s', (_, about, bytes, plan) => {
    expect(planOf(about, bytes)).toMatchObject(plan)
  })
})

describe('what an answer tells of its file', () => {
  it.each<[string, Record<string, string>, About | undefined]>([
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
    expect(aboutOf(headersOf(given))).toEqual(about)
  })
})

describe('the answer to a request for the rest', () => {
  const plan = { kind: 'from', bytes: 50_000, ifRange: '"a"', about: ABOUT } as const
  const the = (range: string, more: Record<string, string> = { etag: '"a"' }) => ({
    'content-range': range,
    ...more,
  })
  const REST = 'bytes 50000-99999/100000'
  it.each<[string, number, Record<string, string>, string]>([
    ['the rest', 206, the(REST), 'append'],
    ['the rest of who knows what', 206, the(REST, {}), 'mismatch'],
    ['the rest of something of unknown length', 206, the('bytes 50000-99999/*'), 'append'],
    ['the whole', 200, {}, 'anew'],
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
    ['that there is no more, of half', 416, the('bytes */50000', { etag: '"a"' }), 'mismatch'],
    ['nothing', 416, {}, 'mismatch'],
  ])('%s', (_, status, given, continuation) => {
    expect(continuationOf(plan, { status, header: headersOf(given) })).toBe(continuation)
  })

  it.each<[string, About, number, Record<string, string>, string]>([
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
    ['the end', { etag: '"a"' }, 416, the('bytes */50000', { etag: '"a"' }), 'whole'],
    [
      'the end, by date',
      { lastModified: DATE },
      416,
      the('bytes */50000', { 'last-modified': DATE }),
      'whole',
    ],
    ['the end of another', { etag: '"a"' }, 416, the('bytes */50000', { etag: '"b"' }), 'mismatch'],
    ['the end of who knows what', { etag: '"a"' }, 416, the('bytes */50000', {}), 'mismatch'],
    ['an end elsewhere', { etag: '"a"' }, 416, the('bytes */40000', { etag: '"a"' }), 'mismatch'],
  ])('where the length was not known: %s', (_, about, status, given, continuation) => {
    expect(continuationOf({ ...plan, about }, { status, header: headersOf(given) })).toBe(continuation)
  })

  it('tells the length of the whole', () => {
    expect(['bytes 5-9/10', 'bytes 5-9/*', 'x'].map((range) => totalOf(headersOf(the(range))))).toEqual([
      10,
      undefined,
      undefined,
    ])
  })
})

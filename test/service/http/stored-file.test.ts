import { expect, test } from 'vitest'
import { isKnownTag, rangeOf } from '../../../src/service/http/stored-file.js'

const ETAG = '"abc"'
const YESTERDAY = new Date(Date.UTC(2026, 0, 2)).toUTCString()

test.each([
  [undefined, false],
  ['"x"', false],
  ['*', true],
  ['"x", "abc"', true],
  ['W/"abc"', true],
])('a client with If-None-Match %s has the file: %s', (tags, isKnown) => {
  expect(isKnownTag({ 'if-none-match': tags }, ETAG)).toBe(isKnown)
})

test.each([
  [{}, undefined],
  [{ range: 'bytes=0-' }, { start: 0, end: 9 }],
  [{ range: 'bytes=9-9' }, { start: 9, end: 9 }],
  [{ range: 'bytes=3-999' }, { start: 3, end: 9 }],
  [{ range: 'bytes=-4' }, { start: 6, end: 9 }],
  [{ range: 'bytes=-99' }, { start: 0, end: 9 }],
  [{ range: 'Bytes = 1 - 2' }, { start: 1, end: 2 }],
  [{ range: 'bytes=10-' }, 'outside'],
  [{ range: 'bytes=-0' }, 'outside'],
  [{ range: 'bytes=5-4' }, undefined],
  [{ range: 'bytes=-' }, undefined],
  [{ range: 'bytes=a-b' }, undefined],
  [{ range: 'bytes=0-1,3-4' }, undefined],
  [{ range: 'lines=0-1' }, undefined],
  [{ range: 'bytes=99999999999999999999-' }, 'outside'],
  [
    { range: 'bytes=1-2', 'if-range': '"abc"' },
    { start: 1, end: 2 },
  ],
  [{ range: 'bytes=1-2', 'if-range': 'W/"abc"' }, undefined],
  [{ range: 'bytes=1-2', 'if-range': YESTERDAY }, undefined],
])('%j asks for the range %j', (headers, range) => {
  expect(rangeOf(headers, ETAG, 10)).toEqual(range)
})

test('an empty file cannot satisfy a range', () => {
  expect(rangeOf({ range: 'bytes=0-' }, ETAG, 0)).toBe('outside')
})

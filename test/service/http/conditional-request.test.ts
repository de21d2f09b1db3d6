import { expect, test } from 'vitest'
import { answerFor } from '../../../src/service/http/conditional-request.js'

const FILE = { etag: '"abc"', modifiedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678), bytes: 10 }
const [BEFORE, SAME, AFTER] = [-1_000, 0, 1_000].map((ms) => new Date(FILE.modifiedAtMs + ms).toUTCString())

test.each<[headers: Record<string, string | undefined>, answer: ReturnType<typeof answerFor>]>([
  [{}, { status: 200 }],
  [{ 'if-match': '*' }, { status: 200 }],
  [{ 'if-match': '"x", "abc"' }, { status: 200 }],
  [{ 'if-match': 'W/"abc"' }, { status: 412 }],
  [{ 'if-match': '"x"' }, { status: 412 }],
  [{ 'if-unmodified-since': SAME }, { status: 200 }],
  [{ 'if-unmodified-since': AFTER }, { status: 200 }],
  [{ 'if-unmodified-since': BEFORE }, { status: 412 }],
  [{ 'if-unmodified-since': 'yesterday' }, { status: 200 }],
  [{ 'if-match': '"abc"', 'if-unmodified-since': BEFORE }, { status: 200 }],
  [{ 'if-none-match': '*' }, { status: 304 }],
  [{ 'if-none-match': 'W/"abc"' }, { status: 304 }],
  [{ 'if-none-match': '"x"', 'if-modified-since': SAME }, { status: 200 }],
  [{ 'if-modified-since': SAME }, { status: 304 }],
  [{ 'if-modified-since': BEFORE }, { status: 200 }],
  [{ 'if-modified-since': 'yesterday' }, { status: 200 }],
  [{ 'if-none-match': '"abc"', range: 'bytes=1-2' }, { status: 304 }],
  [{ range: 'bytes=0-' }, { status: 206, range: { start: 0, end: 9 } }],
  [{ range: 'bytes=9-9' }, { status: 206, range: { start: 9, end: 9 } }],
  [{ range: 'bytes=3-999' }, { status: 206, range: { start: 3, end: 9 } }],
  [{ range: 'bytes=-4' }, { status: 206, range: { start: 6, end: 9 } }],
  [{ range: 'bytes=-99' }, { status: 206, range: { start: 0, end: 9 } }],
  [{ range: 'Bytes = 1 - 2' }, { status: 206, range: { start: 1, end: 2 } }],
  [{ range: 'bytes=10-' }, { status: 416 }],
  [{ range: 'bytes=-0' }, { status: 416 }],
  [{ range: 'bytes=5-4' }, { status: 200 }],
  [{ range: 'bytes=-' }, { status: 200 }],
  [{ range: 'bytes=a-b' }, { status: 200 }],
  [{ range: 'bytes=0-1,3-4' }, { status: 200 }],
  [{ range: 'lines=0-1' }, { status: 200 }],
  [{ range: 'bytes=99999999999999999999-' }, { status: 416 }],
  [
    { range: 'bytes=1-2', 'if-range': '"abc"' },
    { status: 206, range: { start: 1, end: 2 } },
  ],
  [{ range: 'bytes=1-2', 'if-range': 'W/"abc"' }, { status: 200 }],
  [
    { range: 'bytes=1-2', 'if-range': SAME },
    { status: 206, range: { start: 1, end: 2 } },
  ],
  [{ range: 'bytes=1-2', 'if-range': BEFORE }, { status: 200 }],
  [{ range: 'bytes=1-2', 'if-range': 'yesterday' }, { status: 200 }],
])('%j', (headers, answer) => {
  expect(answerFor(headers, FILE)).toEqual(answer)
})

test('an empty file cannot satisfy a range', () => {
  expect(answerFor({ range: 'bytes=0-' }, { ...FILE, bytes: 0 })).toEqual({ status: 416 })
  expect(answerFor({}, { ...FILE, bytes: 0 })).toEqual({ status: 200 })
})

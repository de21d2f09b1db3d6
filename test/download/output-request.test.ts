import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { mayHaveExpired } from '../../src/download/fetch-output.js'
import {
  AttemptFailed,
  continuationOf,
  decoded,
  type FileVersion,
  failureOfStatus,
  versionOf,
} from '../../src/download/output-request.js'
import type { HttpResponse } from '../../src/host/http.js'

it('stops at an encoded file that is decoded into more than 256 MiB and a hundred times its size', async () => {
  const mebibyte = gzipSync(Buffer.alloc(1_048_576))
  let sent = 0
  const response: HttpResponse = {
    status: 200,
    header: (name) => (name === 'content-encoding' ? 'gzip' : undefined),
    // Members that follow one another are one file.
    body: (async function* () {
      for (; sent < 1_000; sent++) yield mebibyte
    })(),
    discard() {},
  }
  const read = async () => {
    for await (const _ of decoded(response, () => {}, undefined));
  }
  await expect(read()).rejects.toMatchObject({
    isRetryable: false,
    message: expect.stringMatching(
      /^the host sent \d+ bytes, which are decoded into more than 268435456 bytes$/,
    ),
  })
  expect(sent).toBe(256)
})

const VERSION: FileVersion = { etag: '"a"', totalBytes: 100_000 }
/** The headers of a response, of which one has another value. */
function headersOf(usual: Readonly<Record<string, string>>, other: string) {
  const [name = '', value = ''] = other.split(': ')
  const headers: Readonly<Record<string, string>> = { ...usual, [name]: value }
  return (asked: string) => headers[asked]
}

it.each([
  ['with a strong ETag and a length', '', true],
  ['with the encoding "identity"', 'content-encoding: Identity', true],
  ['not without an ETag', 'etag', false],
  ['not with a weak ETag', 'etag: W/"a"', false],
  ['not with an ETag without quotes', 'etag: a', false],
  ['not with an ETag that no header can contain', 'etag: "\n"', false],
  ['not without a valid length', 'content-length: -1', false],
  ['not with an encoding', 'content-encoding: gzip', false],
])('a download can be resumed %s', (_, other, isKnown) => {
  const header = headersOf({ etag: '"a"', 'content-length': '100000' }, other)
  expect(versionOf(header)).toEqual(isKnown ? VERSION : undefined)
})

it.each([
  ['is appended', 206, '', 'append'],
  ['is not appended without an ETag', 206, 'etag', 'mismatch'],
  ['is not appended with a weak ETag', 206, 'etag: W/"a"', 'mismatch'],
  ['is not appended with another ETag', 206, 'etag: "b"', 'mismatch'],
  ['is not appended if it is encoded', 206, 'content-encoding: gzip', 'mismatch'],
  ['is the whole file', 200, '', 'restart'],
  ['has no range', 206, 'content-range', 'mismatch'],
  ['has several ranges', 206, 'content-range: bytes 1-2/9, 4-5/9', 'mismatch'],
  ['starts elsewhere', 206, 'content-range: bytes 40000-99999/100000', 'mismatch'],
  ['ends too early', 206, 'content-range: bytes 50000-80000/100000', 'mismatch'],
  ['is of a longer file', 206, 'content-range: bytes 50000-109999/110000', 'mismatch'],
  ['is empty', 416, 'content-range: bytes */100000', 'mismatch'],
])('the response to a request for the rest %s: %i %s', (_, status, other, continuation) => {
  const usual = { etag: '"a"', 'content-range': 'bytes 50000-99999/100000' }
  expect(continuationOf(VERSION, 50_000, { status, header: headersOf(usual, other) })).toBe(continuation)
})

it.each([
  [200 + 4, false, false],
  [206, false, false],
  [403, false, true],
  [404, false, true],
  [408, true, false],
  [410, false, true],
  [429, true, false],
  [500, true, false],
  [503, true, false],
])('the status %i of a host: again %s, expired %s', (status, again, expired) => {
  const told = failureOfStatus(status)
  expect(told).toMatchObject({ isRetryable: again, status, message: `the host answered ${status}` })
  expect(mayHaveExpired(told)).toBe(expired)
})

it('says nothing that could drive a terminal', () => {
  expect(new AttemptFailed('\u001b[31mred\nline', { isRetryable: true }).message).toBe('[31mred line')
})

import { createRequire } from 'node:module'
import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import { BodyTooLarge, decodedBody, receiveText } from '../../src/host/response-body.js'
import { responseOf } from '../support/index.js'

const TEXT = JSON.stringify({ id: 'run_1', prompt: 'ä fox '.repeat(5_000) })
const CONTENT = Buffer.from(TEXT)
const TORN = new HttpFailure('the connection was reset', { sent: true })
const GZIP = zlib.gzipSync(CONTENT)
/** The content in each encoding that Node decodes. Node 20 has no zstd. */
const ENCODED = new Map<string | undefined, Buffer>([
  [undefined, CONTENT],
  ['aws-chunked, GZIP', GZIP],
  ['gzip', GZIP],
  ['deflate', zlib.deflateSync(CONTENT)],
  ['br, identity, gzip', zlib.gzipSync(zlib.brotliCompressSync(CONTENT))],
])
const { zstdCompressSync } = createRequire(import.meta.url)('node:zlib')
if (zstdCompressSync) ENCODED.set('zstd', zstdCompressSync(CONTENT))

async function* inChunks(bytes: Uint8Array, size: number, failure?: Error): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
  if (failure !== undefined) throw failure
}

/** Reads the decoded body to its end, or to its error. */
async function read(encoding: string | undefined, body: AsyncIterable<Uint8Array>) {
  const chunks: Uint8Array[] = []
  let error: unknown
  try {
    for await (const chunk of decodedBody(() => encoding, body)) chunks.push(chunk)
  } catch (thrown) {
    error = thrown
  }
  return { bytes: Buffer.concat(chunks), error }
}

/** The content without its last bytes. */
const cut = (encoding: string) => ENCODED.get(encoding)?.subarray(0, -9) ?? expect.unreachable()

describe('an encoded body', () => {
  it.each([...ENCODED])(
    'with the encoding %s is decoded, however its bytes are split',
    async (encoding, encoded) => {
      for (const size of [1, 7, 65_536]) {
        const { bytes, error } = await read(encoding, inChunks(encoded, size))
        expect({ error, isEqual: bytes.equals(CONTENT) }).toEqual({ error: undefined, isEqual: true })
      }
    },
  )

  it.each(['gzip', 'deflate', 'br, identity, gzip'])(
    'that breaks off gives what could be decoded, then its own error: %s',
    async (encoding) => {
      const { bytes, error } = await read(encoding, inChunks(cut(encoding), 16, TORN))
      expect(error).toBe(TORN)
      expect(bytes.byteLength).toBeGreaterThan(0)
      expect(CONTENT.subarray(0, bytes.byteLength).equals(bytes)).toBe(true)
    },
  )

  it.each(['gzip', 'deflate'])('that ends too early cannot be decoded: %s', async (encoding) => {
    const { error } = await read(encoding, inChunks(cut(encoding), 65_536))
    expect(error).toBeInstanceOf(HttpFailure)
    expect(error).toMatchObject({ message: 'the encoded response cannot be decoded: Z_BUF_ERROR' })
  })

  it.each(['compress', 'gzip, nonsense'])('with an unknown encoding is an error: %s', async (encoding) => {
    const { bytes, error } = await read(encoding, inChunks(CONTENT, 65_536))
    expect(bytes.byteLength).toBe(0)
    expect(error).toMatchObject({
      message: 'the response has an unsupported encoding, although none was requested',
    })
  })

  it('without a byte, as with status 304, is empty', async () => {
    expect(await read('gzip', inChunks(Buffer.alloc(0), 1))).toEqual({
      bytes: Buffer.alloc(0),
      error: undefined,
    })
  })

  it('that grows a thousandfold is decoded in chunks, so that its reader can stop', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(64 * 1_048_576))
    let decoded = 0
    for await (const chunk of decodedBody(() => 'gzip', inChunks(bomb, 65_536))) {
      expect(chunk.byteLength).toBeLessThanOrEqual(131_072)
      decoded += chunk.byteLength
      if (decoded > 1_048_576) break
    }
    expect(decoded).toBeLessThan(1_048_576 + 131_073)
  })
})

describe('a text', () => {
  const received = (body: Uint8Array, encoding = '', isCut = false) =>
    receiveText(
      responseOf({
        status: 200,
        body,
        cut: isCut,
        headers: encoding ? { 'content-encoding': encoding } : {},
      }),
      1_000_000,
    )

  it('has a limit for its decoded size', async () => {
    const { text, failure } = await received(zlib.gzipSync(Buffer.alloc(50_000_000, 'x')), 'gzip')
    expect(failure).toBeInstanceOf(BodyTooLarge)
    expect(text).toBe('x'.repeat(1_000_000))
  })

  it.each([
    ['encoded', GZIP, 'gzip'],
    ['plain, although the header names an encoding', CONTENT, 'gzip'],
    ['of no known encoding, but plain', CONTENT, 'nonsense'],
  ])('is read: %s', async (_, body, encoding) => {
    expect(await received(body, encoding)).toEqual({ text: TEXT })
  })

  it('ends before a character that a broken connection cut', async () => {
    const half = Buffer.from('fox ä').subarray(0, -1)
    expect((await received(half, '', true)).binary).toBeUndefined()
    expect((await received(half)).binary).toEqual(half)
  })

  it.each([
    ['bytes that are not UTF-8', Buffer.from('{"id":"a\xe4"}', 'latin1'), ''],
    ['NUL', Buffer.from('a\0b'), ''],
    ['bytes in an unknown encoding', GZIP, 'compress'],
    ['bytes that are not what the header says', zlib.deflateSync(CONTENT), 'gzip'],
  ])('that cannot be read has all its bytes: %s', async (_, body, encoding) => {
    const { binary, failure, undecodable } = await received(body, encoding)
    expect(Buffer.from(binary ?? []).equals(body)).toBe(true)
    expect(failure).toBeUndefined()
    expect(undecodable === undefined).toBe(encoding === '')
  })
})

import { createRequire } from 'node:module'
import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import { BodyTooLarge, decodedBody, receiveText } from '../../src/host/response-body.js'
import { responseOf } from '../support/responses.js'

const TEXT = JSON.stringify({ id: 'run_1', prompt: 'ä fox '.repeat(5_000) })
const CONTENT = Buffer.from(TEXT)
const TORN = new HttpFailure('the connection was reset', { sent: true })

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
  return {
    bytes: Buffer.concat(chunks),
    largest: Math.max(0, ...chunks.map((each) => each.byteLength)),
    error,
  }
}

const zstd: ((bytes: Uint8Array) => Buffer) | undefined = Reflect.get(
  createRequire(import.meta.url)('node:zlib'),
  'zstdCompressSync',
)
const brotli = (bytes: Uint8Array) => zlib.brotliCompressSync(bytes)
const ENCODED: readonly [string | undefined, Buffer][] = [
  [undefined, CONTENT],
  ['aws-chunked, GZIP', zlib.gzipSync(CONTENT)],
  ['gzip', zlib.gzipSync(CONTENT)],
  ['deflate', zlib.deflateSync(CONTENT)],
  ['br, identity, gzip', zlib.gzipSync(brotli(CONTENT))],
  ...(zstd === undefined ? [] : [['zstd', zstd(CONTENT)] as [string, Buffer]]),
]

describe('an encoded body', () => {
  it.each(ENCODED)('decodes a %s body, however its bytes are split', async (encoding, encoded) => {
    for (const size of [1, 7, 65_536]) {
      const { bytes, error } = await read(encoding, inChunks(encoded, size))
      expect({ error, isEqual: bytes.equals(CONTENT) }).toEqual({ error: undefined, isEqual: true })
    }
  })

  it.each(ENCODED.filter(([encoding]) => encoding !== undefined && !/identity$|aws|UTF|zstd/.test(encoding)))(
    'that breaks off gives what could be decoded, then its own error: %s',
    async (encoding, encoded) => {
      const { bytes, error } = await read(encoding, inChunks(encoded.subarray(0, -9), 16, TORN))
      expect(error).toBe(TORN)
      expect(bytes.byteLength).toBeGreaterThan(0)
      expect(CONTENT.subarray(0, bytes.byteLength).equals(bytes)).toBe(true)
    },
  )

  it.each(['gzip', 'deflate'])('fails on a %s body that ends too early', async (encoding) => {
    const [, encoded] = ENCODED.find(([name]) => name === encoding) ?? []
    const { error } = await read(encoding, inChunks((encoded ?? CONTENT).subarray(0, -9), 65_536))
    expect(error).toBeInstanceOf(HttpFailure)
    expect(error).toMatchObject({ message: 'the encoded response cannot be decoded: Z_BUF_ERROR' })
  })

  it.each(['compress', 'gzip, nonsense'])('with an unknown encoding is an error: %s', async (encoding) => {
    const { bytes, error } = await read(encoding, inChunks(CONTENT, 65_536))
    expect(bytes.byteLength).toBe(0)
    expect((error as Error).message).toMatch(
      /^the response is encoded (as compress|in an unknown way), although no encoding was requested$/,
    )
  })

  it('without a byte, as with status 304, is empty', async () => {
    expect(await read('gzip', inChunks(Buffer.alloc(0), 1))).toMatchObject({ largest: 0, error: undefined })
  })

  it('decodes a body that grows a thousandfold in chunks, so that its reader can stop', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(64 * 1_048_576))
    let read = 0
    for await (const chunk of decodedBody(() => 'gzip', inChunks(bomb, 65_536))) {
      expect(chunk.byteLength).toBeLessThanOrEqual(131_072)
      read += chunk.byteLength
      if (read > 1_048_576) break
    }
    expect(read).toBeLessThan(1_048_576 + 131_073)
  })
})

describe('a text', () => {
  const received = (body: Uint8Array, encoding?: string, cut = false, maxBytes = 1_000_000) =>
    receiveText(
      responseOf({ status: 200, body, cut, headers: encoding ? { 'content-encoding': encoding } : {} }),
      maxBytes,
    )

  it('limits an encoded text by its decoded size', async () => {
    const { text, failure } = await received(zlib.gzipSync(Buffer.alloc(50_000_000, 'x')), 'gzip')
    expect(failure).toBeInstanceOf(BodyTooLarge)
    expect(text).toBe('x'.repeat(1_000_000))
  })

  it.each<[string, Uint8Array, string | undefined, boolean]>([
    ['encoded', zlib.gzipSync(CONTENT), 'gzip', false],
    ['plain, although the header names an encoding', CONTENT, 'gzip', false],
    ['of no known encoding, but plain', CONTENT, 'nonsense', false],
  ])('is read: %s', async (_, body, encoding, cut) => {
    expect(await received(body, encoding, cut)).toEqual({ text: TEXT })
  })

  it('returns the text before a character that a broken connection cut', async () => {
    const half = Buffer.from('fox ä').subarray(0, -1)
    expect((await received(half, undefined, true)).binary).toBeUndefined()
    expect((await received(half)).binary).toEqual(half)
  })

  it.each<[string, Buffer, string | undefined]>([
    ['bytes that are not UTF-8', Buffer.from('{"id":"a\xe4"}', 'latin1'), undefined],
    ['NUL', Buffer.from('a\0b'), undefined],
    ['bytes in an unknown encoding', zlib.gzipSync(CONTENT), 'compress'],
    ['bytes that are not what the header says', zlib.deflateSync(CONTENT), 'gzip'],
  ])('that cannot be read has all its bytes: %s', async (_, body, encoding) => {
    const { binary, failure, undecodable } = await received(body, encoding)
    expect(Buffer.from(binary ?? []).equals(body)).toBe(true)
    expect(failure).toBeUndefined()
    expect(undecodable === undefined).toBe(encoding === undefined)
  })
})

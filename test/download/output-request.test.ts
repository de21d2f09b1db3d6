import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { transfer } from '../../src/download/fetch-output.js'
import type { FileKind } from '../../src/download/file-kind.js'
import { decoded, inPieces } from '../../src/download/output-request.js'
import { createPart, type Part } from '../../src/download/part-file.js'
import type { HttpResponse } from '../../src/host/http.js'
import { answer, fetchOf, newFolder, once } from './download-setup.js'

const KIB = 1_024
const KIND: FileKind = { extension: 'bin', contentType: 'application/octet-stream', from: 'nothing' }
const bytesOf = (chunks: readonly Uint8Array[]) => chunks.reduce((sum, { length }) => sum + length, 0)

it.each([
  ['nothing', [], []],
  ['a small file', [10], [10]],
  ['the first chunk alone', [10, 20, 30], [10, 50]],
  ['512 KiB each', Array(20).fill(64 * KIB), [64 * KIB, 512 * KIB, 512 * KIB, 192 * KIB]],
  ['256 chunks at most', Array(600).fill(1), [1, 256, 256, 87]],
  ['a large chunk whole', [10, 2_000 * KIB, 20], [10, 2_000 * KIB, 20]],
])('has pieces: %s', async (_, sizes: readonly number[], expected) => {
  const pieces = []
  for await (const piece of inPieces(once(...sizes.map((size) => new Uint8Array(size)))))
    pieces.push(bytesOf(piece))
  expect(pieces).toEqual(expected)
})

it.each([
  ['a whole file', undefined, 200],
  ['the rest of one', { etag: '"1"' }, 206],
])('are written: %s', async (_, metadata, status) => {
  const real = await createPart(join(newFolder(), 'a.bin'))
  await real.restart(metadata)
  if (status === 206) await real.write([new Uint8Array(8 * KIB)])
  const from = real.bytes
  const written: number[] = []
  const part: Part = Object.create(real, {
    write: {
      value: (chunks: readonly Uint8Array[]) => real.write(chunks).then(() => written.push(bytesOf(chunks))),
    },
  })
  const session = {
    opened: status === 206 ? { part, path: 'a.bin', kind: KIND } : undefined,
    expectedKind: undefined,
    open: async (kind: FileKind) => ({ part, path: 'a.bin', kind }),
  }
  const headers = { etag: '"1"', 'content-range': `bytes ${from}-${from + 2_048 * KIB - 1}/*` }
  const { fetch } = fetchOf(() =>
    answer(() => once(...Array(32).fill(new Uint8Array(64 * KIB))), headers, status),
  )
  const url = new URL('http://host.test/a.bin')
  const meter = { restart() {}, expect() {}, receive() {}, end() {} }
  const { bytes } = await transfer({ url, fetch, signal: undefined, nowMs: 0 }, session, meter)
  expect(written).toEqual([64, 512, 512, 512, 448].map((kib) => kib * KIB))
  expect(bytes).toBe(from + 2_048 * KIB)
  await real.discard()
})

it('throws an error of the body after all that arrived before it', async () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield* once(new Uint8Array(10), new Uint8Array(20))
    throw new Error('the connection was reset')
  }
  const pieces = inPieces(broken())
  expect(bytesOf((await pieces.next()).value ?? [])).toBe(10)
  expect(bytesOf((await pieces.next()).value ?? [])).toBe(20)
  await expect(pieces.next()).rejects.toThrow('the connection was reset')
})

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

import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { decoded } from '../../src/download/output-request.js'
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

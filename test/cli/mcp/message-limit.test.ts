/** Lines that are too long are left out, however they arrive; their id is found where it is certain. */
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createMessageLimit, idIn, type RequestId } from '../../../src/cli/mcp/server.js'

async function passed(text: string, chunkBytes: number) {
  const leftOut: (RequestId | undefined)[] = []
  const limit = createMessageLimit({ maxBytes: 4_000, onTooLong: (id) => void leftOut.push(id) })
  const bytes = Buffer.from(text)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) =>
    bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes),
  )
  let read = ''
  for await (const lines of Readable.from(chunks).pipe(limit)) read += String(lines)
  return { read, leftOut }
}

const LONG = 'é'.repeat(3_000)

describe('lines', () => {
  it.each([1, 7, 1_000, 4_096, 100_000])('in chunks of %i bytes', async (chunkBytes) => {
    const small = (id: number) => `{"id":${id},"text":"ü"}\n`
    const text = [
      small(1),
      `{"id":2,"text":"${LONG}"}\n`,
      '\n',
      small(3),
      `{"text":"${LONG}${LONG}","id":"four"}\n`,
      `${'x'.repeat(3_999)}\n`,
      small(5),
      `{"id":6,"text":"${LONG}`,
    ].join('')
    expect(await passed(text, chunkBytes)).toEqual({
      read: [small(1), '\n', small(3), `${'x'.repeat(3_999)}\n`, small(5)].join(''),
      leftOut: [2, 'four'],
    })
  })
})

describe('the id of a request', () => {
  it.each<[string, RequestId | undefined]>([
    ['{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":8', 7],
    ['{ "jsonrpc" : "2.0", "method" : "x", "id" : "a-b", "params":', 'a-b'],
    ['{"method":"tools/call","params":{"id":8},"jsonrpc":"2.0","id":7}\n', 7],
    ['{"method":"x","id":-3}', -3],
    // Those of objects and texts inside.
    ['{"method":"x","params":{"id":8}}', undefined],
    ['{"params":{"id":8', undefined],
    ['{"params":"\\"id\\":8}"}', undefined],
    ['{"method":"x\\",\\"id\\":8,', undefined],
    ['{"method":"x"}', undefined],
    ['[{"id":1}]', undefined],
    ['', undefined],
  ])('%j', (text, id) => {
    expect(idIn(text, text)).toBe(id)
  })
})

/** The bytes of a body, and what can happen to them. Every function passes one body through. */

export type ByteStream = AsyncIterable<Uint8Array>

/** Thrown out of a body in which the connection is reset. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset'
}

/** The first bytes as they are, then what `next` does; a body that is shorter comes whole first. */
export async function* firstBytes(
  body: ByteStream,
  bytes: number,
  next: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let left = bytes
  if (left > 0)
    for await (const chunk of body) {
      yield chunk.subarray(0, left)
      left -= chunk.byteLength
      if (left <= 0) break
    }
  await next()
}

/** From here on every bit is another. */
export async function* corruptFrom(body: ByteStream, from: number): AsyncGenerator<Uint8Array> {
  let offset = 0
  for await (const chunk of body) {
    const good = Math.max(0, from - offset)
    offset += chunk.byteLength
    yield chunk.map((byte, at) => (at < good ? byte : byte ^ 0xff))
  }
}

const PIECES_A_SECOND = 10

/** No faster than this; each piece comes when its time has passed. */
export async function* throttle(
  body: ByteStream,
  bytesPerSecond: number,
  sleep: (ms: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const most = Math.max(1, Math.ceil(bytesPerSecond / PIECES_A_SECOND))
  for await (const chunk of body)
    for (let at = 0; at < chunk.byteLength; at += most) {
      const piece = chunk.subarray(at, at + most)
      await sleep((1_000 * piece.byteLength) / bytesPerSecond)
      yield piece
    }
}

export async function readAll(body: ByteStream): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

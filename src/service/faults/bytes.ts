/** Transforms of a body's byte stream. */

export type ByteStream = AsyncIterable<Uint8Array>

/** Thrown by a body at the point where the connection is to be reset. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset'
}

/** Passes the first bytes on, or the whole body when it is shorter; then waits for `next`. */
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

/** Inverts every bit from this offset on. */
export async function* corruptFrom(body: ByteStream, from: number): AsyncGenerator<Uint8Array> {
  let offset = 0
  for await (const chunk of body) {
    const intact = Math.max(0, from - offset)
    offset += chunk.byteLength
    yield chunk.map((byte, at) => (at < intact ? byte : byte ^ 0xff))
  }
}

const PIECES_A_SECOND = 10

/** Limits the speed: each piece is passed on when its share of the time is over. */
export async function* throttle(
  body: ByteStream,
  bytesPerSecond: number,
  sleep: (ms: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const pieceBytes = Math.max(1, Math.ceil(bytesPerSecond / PIECES_A_SECOND))
  for await (const chunk of body)
    for (let at = 0; at < chunk.byteLength; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes)
      await sleep((1_000 * piece.byteLength) / bytesPerSecond)
      yield piece
    }
}

export async function readAll(body: ByteStream): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

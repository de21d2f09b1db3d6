/** Receives a body in larger pieces, and goes on receiving while the piece before is hashed and written. */
import type { Clock } from '../host/clock.js'
import type { Bytes } from './checked-body.js'

/** Larger pieces are not faster (`bench/results.md`). */
const PIECE_BYTES = 524_288
/** For a host that sends a few bytes at a time: each chunk takes some memory besides its bytes. */
const MAX_CHUNKS = 256
/** A process that is killed while its host is slow loses no more than what arrived in this time. */
const MAX_DELAY_MS = 200

/**
 * The chunks of `body` in pieces that are never empty: the first chunk, which tells what the file is, then 512 KiB each, or
 * what arrived in 200 ms, or what is left. An error of `body` is thrown after all that arrived before it.
 */
export async function* inPieces(body: Bytes, alarm: Clock['alarm']): AsyncGenerator<readonly Uint8Array[]> {
  let piece: Uint8Array[] = []
  let bytes = 0
  let minBytes = 1
  let isDue = false
  let isOver = false
  let isAbandoned = false
  let failure: { readonly error: unknown } | undefined
  let disarm = () => {}
  // Only one side waits at a time: the reader for a piece, or the receiver until a full one was taken.
  let wake = () => {}
  const change = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
  const finishPiece = () => {
    isDue = true
    wake()
  }

  async function receive(): Promise<void> {
    for await (const chunk of body) {
      if (isAbandoned) return
      if (piece.length === 0) disarm = alarm(MAX_DELAY_MS, finishPiece)
      piece.push(chunk)
      bytes += chunk.byteLength
      if (bytes < minBytes && piece.length < MAX_CHUNKS) continue
      finishPiece()
      while (isDue && !isAbandoned) await change()
    }
  }

  void receive()
    .catch((error) => {
      failure = { error }
    })
    .finally(() => {
      isOver = true
      finishPiece()
    })
  try {
    while (!isOver || piece.length > 0) {
      while (!isDue) await change()
      const taken = piece
      piece = []
      bytes = 0
      minBytes = PIECE_BYTES
      isDue = isOver
      disarm()
      wake()
      if (taken.length > 0) yield taken
    }
  } finally {
    isAbandoned = true
    disarm()
    wake()
  }
  if (failure !== undefined) throw failure.error
}

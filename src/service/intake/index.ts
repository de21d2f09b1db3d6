/**
 * Reads the bodies of creates. A large one takes a second of parsing, decoding and hashing, so it is read in a thread
 * of its own, one after the other, and the service answers other requests meanwhile.
 */
import { startThread, type Thread } from '../../host/thread.js'
import type { Kind } from '../../protocol/models.js'
import { Refusal } from '../rules/refusal.js'
import { receivedError } from '../sent-error.js'
import type { IntakeAnswer, IntakeRequest } from './messages.js'
import { type ReadCreate, readCreate } from './read-create.js'

export interface Intake {
  /** Throws `Refusal`: 400. Takes the pieces of the body over: the caller must not use them afterwards. */
  read(body: readonly Uint8Array[]): Promise<ReadCreate>
  close(): Promise<void>
}

/** Reading so much takes about a millisecond, less than the way to the thread and back. */
const MAX_INLINE_BYTES = 65_536

export function createIntake(models: Readonly<Record<Kind, string>>): Intake {
  let thread: Thread<IntakeRequest, IntakeAnswer> | undefined
  let isClosed = false

  return {
    async read(body) {
      const bytes = body.reduce((sum, piece) => sum + piece.byteLength, 0)
      if (bytes <= MAX_INLINE_BYTES) return readCreate(Buffer.concat(body), models)
      if (isClosed) throw new Refusal('not_ready')
      if (thread === undefined || thread.hasEnded) thread = startThread('intake')
      const answer = await thread.ask({ body, models }, movable(body))
      if ('error' in answer) throw receivedError(answer.error)
      return answer.read
    },
    async close() {
      isClosed = true
      await thread?.close()
    },
  }
}

/** The memory of the pieces that have their own; a small piece may share it with other data, and is copied. */
const movable = (body: readonly Uint8Array[]): readonly ArrayBuffer[] =>
  body.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  )

/**
 * Reads the bodies of creates. A large one takes a second of parsing, decoding and hashing, so a thread reads it, one
 * body after the other, and the service answers other requests meanwhile. This file is also the entry of that thread
 * (`dist/intake.cjs`).
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type Numbered, startThread, type Thread } from '../host/thread.js'
import type { Kind } from '../protocol/models.js'
import { type ReadCreate, readCreate } from './rules/create-request.js'
import { Refusal, receivedError, type SentError, sentError } from './rules/refusal.js'

export interface Intake {
  /** Throws `Refusal`: 400. Takes the pieces of the body over: the caller must not use them afterwards. */
  read(body: readonly Uint8Array[]): Promise<ReadCreate>
  close(): Promise<void>
}

interface IntakeRequest {
  /** In pieces. */
  readonly body: readonly Uint8Array[]
  readonly models: Readonly<Record<Kind, string>>
}

type IntakeAnswer = { readonly read: ReadCreate } | { readonly error: SentError }

/** Reading this much takes about a millisecond, less than the way to the thread and back. */
const MAX_INLINE_BYTES = 65_536

const THREAD = 'intake'

export function createIntake(models: Readonly<Record<Kind, string>>): Intake {
  let thread: Thread<IntakeRequest, IntakeAnswer> | undefined
  let isClosed = false

  return {
    async read(body) {
      const bytes = body.reduce((sum, piece) => sum + piece.byteLength, 0)
      if (bytes <= MAX_INLINE_BYTES) return readCreate(Buffer.concat(body), models)
      if (isClosed) throw new Refusal('not_ready')
      if (thread === undefined || thread.hasEnded) thread = startThread(THREAD, THREAD)
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

/** The memory of the pieces that own theirs; a small piece may share it with other data, and is copied. */
const movable = (body: readonly Uint8Array[]): readonly ArrayBuffer[] =>
  body.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  )

// The service itself may run in a thread of another program, which has a port too.
if (workerData === THREAD) parentPort?.on('message', answerRequest)

function answerRequest({ id, message: { body, models } }: Numbered<IntakeRequest>): void {
  const send = (message: IntakeAnswer, moved: readonly ArrayBuffer[] = []) =>
    parentPort?.postMessage({ id, message } satisfies Numbered<IntakeAnswer>, moved)
  try {
    const read = readCreate(Buffer.concat(body), models)
    // Copied here, to save the service's thread the work: memory from Node's pool cannot be moved.
    const images = read.images.map((image) => ({ ...image, data: new Uint8Array(image.data) }))
    send(
      { read: { ...read, images } },
      images.map(({ data }) => data.buffer),
    )
  } catch (error) {
    send({ error: sentError(error) })
  }
}

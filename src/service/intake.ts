/**
 * Reads the bodies of creates. Parsing, decoding and hashing a large body takes a second, so a thread reads large
 * bodies, one after the other, while the service answers other requests. This file is also the entry point of the
 * thread (`dist/intake.cjs`).
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type Numbered, startThread, type Thread } from '../host/thread.js'
import type { Kind } from '../protocol/models.js'
import { type ReadCreate, readCreate } from './rules/create-request.js'
import { Refusal, receivedError, type SentError, sentError } from './rules/refusal.js'

export interface Intake {
  /** Throws `Refusal`: 400. Transfers the chunks of the body: the caller must not use them afterwards. */
  read(body: readonly Uint8Array[]): Promise<ReadCreate>
  close(): Promise<void>
}

interface IntakeRequest {
  /** The body in chunks. */
  readonly body: readonly Uint8Array[]
  readonly models: Readonly<Record<Kind, string>>
}

type IntakeAnswer = { readonly read: ReadCreate } | { readonly error: SentError }

/** Largest body that is read without the thread. Reading it takes about 1 ms, less than a round trip to the thread. */
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
      const answer = await thread.ask({ body, models }, transferableBuffers(body))
      if ('error' in answer) throw receivedError(answer.error)
      return answer.read
    },
    async close() {
      isClosed = true
      await thread?.close()
    },
  }
}

/** Buffers to transfer to the thread. A small chunk may share its buffer with other data, so it is copied. */
const transferableBuffers = (body: readonly Uint8Array[]): readonly ArrayBuffer[] =>
  body.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  )

// Compare `workerData`: the service may itself run in a thread of another program, which also has a `parentPort`.
if (workerData === THREAD) parentPort?.on('message', answerRequest)

function answerRequest({ id, message: { body, models } }: Numbered<IntakeRequest>): void {
  const send = (message: IntakeAnswer, moved: readonly ArrayBuffer[] = []) =>
    parentPort?.postMessage({ id, message } satisfies Numbered<IntakeAnswer>, moved)
  try {
    const read = readCreate(Buffer.concat(body), models)
    // Memory of Node's pool cannot be transferred. Copy it here, to save the service's thread this work.
    const images = read.images.map((image) => ({ ...image, data: new Uint8Array(image.data) }))
    send(
      { read: { ...read, images } },
      images.map(({ data }) => data.buffer),
    )
  } catch (error) {
    send({ error: sentError(error) })
  }
}

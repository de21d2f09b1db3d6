/**
 * Reads the bodies of creates. Parsing, decoding and hashing a large body takes a second, so a thread reads large
 * bodies, one after the other, while the service answers other requests. This file is also the entry point of the
 * thread (`dist/intake.cjs`), and of those that parse large JSON answers of models' servers.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type Numbered, startThread, type Thread } from '../host/thread.js'
import type { ModelDocument } from '../protocol/models.js'
import { isObject } from '../protocol/parse.js'
import { ANSWER_THREAD, parseAnswer } from './engines/upstream/json-answer.js'
import { type ReadCreate, readCreate } from './rules/create-request.js'
import { Refusal, receivedError, type SentError, sentError } from './rules/refusal.js'

export interface Intake {
  /** Throws `Refusal`: 400. Transfers the chunks of the body: the caller must not use them afterwards. */
  read(body: readonly Uint8Array[]): Promise<ReadCreate>
  close(): Promise<void>
}

/** `workerData` of the thread. The documents are sent once, when it starts. */
interface ThreadData {
  readonly thread: typeof THREAD
  readonly models: readonly ModelDocument[]
}

type IntakeAnswer = { readonly read: ReadCreate } | { readonly error: SentError }

/** Largest body that is read without the thread. Reading it takes about 1 ms, less than a round trip to the thread. */
const MAX_INLINE_BYTES = 65_536

const THREAD = 'intake'

export function createIntake(models: readonly ModelDocument[]): Intake {
  let thread: Thread<readonly Uint8Array[], IntakeAnswer> | undefined
  let isClosed = false

  return {
    async read(body) {
      const bytes = body.reduce((sum, piece) => sum + piece.byteLength, 0)
      if (bytes <= MAX_INLINE_BYTES) return readCreate(Buffer.concat(body), models)
      if (isClosed) throw new Refusal('not_ready')
      if (thread === undefined || thread.hasEnded)
        thread = startThread(THREAD, { thread: THREAD, models } satisfies ThreadData)
      const answer = await thread.ask(body, transferableBuffers(body))
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
if (isObject(workerData) && workerData.thread === THREAD) {
  const { models } = workerData as unknown as ThreadData
  parentPort?.on('message', (request) => answerRequest(request, models))
}

if (isObject(workerData) && workerData.thread === ANSWER_THREAD.thread)
  parentPort?.on('message', ({ id, message }: Numbered<Uint8Array>) => {
    const answer = parseAnswer(message)
    const moved = 'files' in answer ? answer.files.map(({ buffer }) => buffer) : []
    parentPort?.postMessage({ id, message: answer }, moved)
  })

function answerRequest(
  { id, message: body }: Numbered<readonly Uint8Array[]>,
  models: readonly ModelDocument[],
): void {
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

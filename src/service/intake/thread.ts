/** The entry of the intake thread; built as `dist/intake.cjs`, and started by `createIntake`. */
import { parentPort } from 'node:worker_threads'
import type { Numbered } from '../../host/thread.js'
import { sentError } from '../sent-error.js'
import type { IntakeAnswer, IntakeRequest } from './messages.js'
import { readCreate } from './read-create.js'

parentPort?.on('message', ({ id, message: { body, models } }: Numbered<IntakeRequest>) => {
  const send = (message: IntakeAnswer, moved: readonly ArrayBuffer[] = []) =>
    parentPort?.postMessage({ id, message } satisfies Numbered<IntakeAnswer>, moved)
  try {
    const read = readCreate(Buffer.concat(body), models)
    // Copied here, so that the service's own thread need not: what Node pools cannot be moved.
    const images = read.images.map((image) => ({ ...image, data: new Uint8Array(image.data) }))
    send(
      { read: { ...read, images } },
      images.map(({ data }) => data.buffer),
    )
  } catch (error) {
    send({ error: sentError(error) })
  }
})

/** The entry of the intake thread; built as `dist/intake.cjs`, and started by `createIntake`. */
import { parentPort } from 'node:worker_threads'
import { messageOf } from '../../errors.js'
import { Refusal } from '../rules/refusal.js'
import type { FromIntake, ToIntake } from './messages.js'
import { readCreate } from './read-create.js'

parentPort?.on('message', ({ id, body, models }: ToIntake) => {
  const send = (message: FromIntake, moved: readonly ArrayBufferLike[] = []) =>
    parentPort?.postMessage(message, moved as ArrayBuffer[])
  try {
    const read = readCreate(body, models)
    // Copied here, so that the service's own thread need not: what Node pools cannot be moved.
    const images = read.images.map((image) => ({ ...image, data: new Uint8Array(image.data) }))
    send(
      { id, read: { ...read, images } },
      images.map(({ data }) => data.buffer),
    )
  } catch (error) {
    if (error instanceof Refusal) send({ id, refused: { code: error.code, detail: error.detail } })
    else send({ id, failed: messageOf(error) })
  }
})

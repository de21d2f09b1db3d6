/**
 * Reads the bodies of creates. A large one takes a second of parsing, decoding and hashing, so it is read in a thread
 * of its own, one after the other, and the service answers other requests meanwhile.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Kind } from '../../protocol/models.js'
import { Refusal } from '../rules/refusal.js'
import type { FromIntake } from './messages.js'
import { type ReadCreate, readCreate } from './read-create.js'

export interface Intake {
  /** Throws `Refusal`: 400. Takes the body over: the caller must not use it afterwards. */
  read(body: Uint8Array): Promise<ReadCreate>
  close(): Promise<void>
}

/** Reading so much takes about a millisecond, less than the way to the thread and back. */
const MAX_INLINE_BYTES = 65_536

interface Waiting {
  resolve(read: ReadCreate): void
  reject(error: Error): void
}

export function createIntake(models: Readonly<Record<Kind, string>>): Intake {
  const waiting = new Map<number, Waiting>()
  let thread: Worker | undefined
  let lastId = 0

  function start(): Worker {
    const started = new Worker(threadScript())
    started.unref()
    started.on('message', ({ id, ...outcome }: FromIntake) => {
      const { resolve, reject } = waiting.get(id) ?? {}
      waiting.delete(id)
      if ('read' in outcome) resolve?.(outcome.read)
      else if ('refused' in outcome) reject?.(new Refusal(outcome.refused.code, outcome.refused.detail))
      else reject?.(new Error(outcome.failed))
    })
    const onEnd = (error: unknown) => {
      if (thread !== started) return
      thread = undefined
      for (const { reject } of waiting.values())
        reject(new Error('the thread that reads request bodies ended', { cause: error }))
      waiting.clear()
    }
    started.on('error', onEnd)
    started.on('exit', onEnd)
    return started
  }

  return {
    async read(body) {
      if (body.byteLength <= MAX_INLINE_BYTES) return readCreate(body, models)
      thread ??= start()
      const [id, to] = [++lastId, thread]
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        // Moves the bytes instead of copying them; a pooled buffer cannot be moved.
        to.postMessage({ id, body, models }, [body.buffer as ArrayBuffer])
      })
    },
    async close() {
      await thread?.terminate()
    },
  }
}

/** Beside this file in the build; from the sources, the one that was built. */
function threadScript(): string {
  const built = fileURLToPath(new URL('./intake.cjs', import.meta.url))
  return existsSync(built) ? built : fileURLToPath(new URL('../../../dist/intake.cjs', import.meta.url))
}

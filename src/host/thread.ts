/** A worker thread that answers requests, each with a number that its answer carries too. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'

/** A message to the thread or from it. */
export interface Numbered<Message> {
  readonly id: number
  readonly message: Message
}

export interface Thread<Request, Answer> {
  /** Whether it has ended, by itself or by `close`. */
  readonly hasEnded: boolean
  /** `moved`: buffers that are handed over instead of copied. Rejects when the thread ends. */
  ask(request: Request, moved?: readonly ArrayBuffer[]): Promise<Answer>
  close(): Promise<void>
}

interface PendingRequest<Answer> {
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** `name` is that of the built file, `dist/<name>.cjs`. The thread does not keep the process alive. */
export function startThread<Request, Answer>(name: string, workerData?: unknown): Thread<Request, Answer> {
  const pending = new Map<number, PendingRequest<Answer>>()
  let lastId = 0
  let ended: Error | undefined
  // Descriptors of databases stay open after the thread (see `database-file.ts`).
  const worker = new Worker(builtFile(`${name}.cjs`), { workerData, trackUnmanagedFds: false })
  worker.unref()
  worker.on('message', ({ id, message }: Numbered<Answer>) => {
    pending.get(id)?.resolve(message)
    pending.delete(id)
  })
  const onEnd = (cause: unknown) => {
    ended ??= new Error(`the thread ${name} has ended`, { cause })
    for (const { reject } of pending.values()) reject(ended)
    pending.clear()
  }
  worker.on('error', onEnd)
  worker.on('exit', onEnd)

  return {
    get hasEnded() {
      return ended !== undefined
    },
    ask: (message, moved = []) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended)
        const id = ++lastId
        pending.set(id, { resolve, reject })
        worker.postMessage({ id, message }, moved)
      }),
    async close() {
      await worker.terminate()
    },
  }
}

/** Beside this file in the build; from the sources, the one that was built. */
function builtFile(name: string): string {
  const built = fileURLToPath(new URL(`./${name}`, import.meta.url))
  return existsSync(built) ? built : fileURLToPath(new URL(`../../dist/${name}`, import.meta.url))
}

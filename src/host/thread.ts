/** Runs a worker thread that answers requests. Each request has a number, and its answer has the same number. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'

/** A message to or from the thread. */
export interface Numbered<Message> {
  readonly id: number
  readonly message: Message
}

export interface Thread<Request, Answer> {
  /** Whether the thread has ended, by itself or after `close`. */
  readonly hasEnded: boolean
  /**
   * Sends a request and resolves with its answer. Buffers in `moved` are transferred, not copied. Rejects if the thread
   * ends.
   */
  ask(request: Request, moved?: readonly ArrayBuffer[]): Promise<Answer>
  close(): Promise<void>
}

interface PendingRequest<Answer> {
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** Starts the thread from the built file `dist/<name>.cjs`. The thread does not keep the process alive. */
export function startThread<Request, Answer>(name: string, workerData?: unknown): Thread<Request, Answer> {
  const pending = new Map<number, PendingRequest<Answer>>()
  let lastId = 0
  let ended: Error | undefined
  // Throws if the current folder no longer exists. The thread would end without a reason.
  process.cwd()
  // Database descriptors must stay open after the thread ends (see `database-file.ts`).
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

/** Returns the path of a built file: beside this file in the build, in `dist` when run from the sources. */
function builtFile(name: string): string {
  const built = fileURLToPath(new URL(`./${name}`, import.meta.url))
  return existsSync(built) ? built : fileURLToPath(new URL(`../../dist/${name}`, import.meta.url))
}

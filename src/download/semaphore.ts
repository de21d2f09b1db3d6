/** Limits how much work runs at the same time; the rest waits in order. */
export interface Semaphore {
  use<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createSemaphore(limit: number): Semaphore {
  const waiting: (() => void)[] = []
  let free = limit
  return {
    async use(work) {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else free += 1
      }
    },
  }
}

/** Limits how much work runs at the same time; the rest waits in order. */
export interface Semaphore {
  /** `release` lets the next begin before `work` has ended. */
  use<Result>(work: (release: () => void) => Promise<Result>): Promise<Result>
}

export function createSemaphore(limit: number): Semaphore {
  const waiting: (() => void)[] = []
  let free = limit
  return {
    async use(work) {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      let isHeld = true
      const release = () => {
        if (!isHeld) return
        isHeld = false
        const next = waiting.shift()
        if (next) next()
        else free += 1
      }
      try {
        return await work(release)
      } finally {
        release()
      }
    },
  }
}

/** So many at once, the others in the order in which they came. */
export interface Slots {
  use<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createSlots(most: number): Slots {
  const waiting: (() => void)[] = []
  let free = most
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

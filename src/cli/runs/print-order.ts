/** Prints results in the order of the runs, each as soon as all before it are printed. */

export interface InOrder<Item> {
  /** `index` from 0; each index once. */
  settle(index: number, item: Item | undefined): void
}

export function inOrder<Item>(print: (item: Item) => void): InOrder<Item> {
  const waiting = new Map<number, Item | undefined>()
  let next = 0
  return {
    settle(index, item) {
      waiting.set(index, item)
      for (; waiting.has(next); next++) {
        const ready = waiting.get(next)
        waiting.delete(next)
        if (ready !== undefined) print(ready)
      }
    },
  }
}

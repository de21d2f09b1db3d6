/**
 * Changes of the same thing would wait for its lock, and each for its own commit. So the first is made at once, and those that
 * arrive until it has ended are made together after it.
 */

const MAX_TOGETHER = 100
/** A larger one is made alone. */
const MAX_BYTES = 4 * 1_048_576
/** Nobody waits longer for a group that hangs. */
const MAX_WAIT_MS = 500

interface Waiting<Item, Outcome> {
  readonly item: Item
  readonly bytes: number
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** `make` returns the outcomes in the order of the items. `bytesOf`: how large an item is, about. */
export function createMerger<Item, Outcome>(
  make: (items: readonly Item[]) => Promise<readonly Outcome[]>,
  bytesOf: (item: Item) => number = () => 0,
): (key: number, item: Item) => Promise<Outcome> {
  /** Of each key of which a group is being made: what waits for its end. */
  const waiting = new Map<number, Waiting<Item, Outcome>[]>()

  async function makeTogether(group: readonly Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await make(group.map(({ item }) => item))
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  async function makeAll(key: number, first: Waiting<Item, Outcome>): Promise<void> {
    const others: Waiting<Item, Outcome>[] = []
    waiting.set(key, others)
    for (let group = [first]; group.length > 0; group = others.splice(0, countTogether(others)))
      await orLate(makeTogether(group))
    waiting.delete(key)
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const change = { item, bytes: bytesOf(item), resolve, reject }
      const others = waiting.get(key)
      if (others === undefined) void makeAll(key, change)
      else others.push(change)
    })
}

/** How many of the first ones are made together. */
function countTogether(waiting: readonly { readonly bytes: number }[]): number {
  let count = 0
  let bytes = 0
  for (const each of waiting) {
    bytes += each.bytes
    if (count === MAX_TOGETHER || (count > 0 && bytes > MAX_BYTES)) break
    count++
  }
  return count
}

/** Resolves when the work has ended, or has taken too long. */
async function orLate(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MAX_WAIT_MS).unref()
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}

/** Coalesces writes per key, which would wait for one lock: the first runs alone, later ones share the next transaction. */

const MAX_TOGETHER = 100
/** A larger one is made alone. */
const MAX_BYTES = 4 * 1_048_576
/** After it, the next group does not wait for one that hangs. */
const MAX_WAIT_MS = 500

interface QueuedWrite<Item, Outcome> {
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
  /** Per key with a running group: the writes after it. */
  const queues = new Map<number, QueuedWrite<Item, Outcome>[]>()

  async function makeTogether(group: readonly QueuedWrite<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await make(group.map(({ item }) => item))
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  async function makeAll(key: number, first: QueuedWrite<Item, Outcome>): Promise<void> {
    const others: QueuedWrite<Item, Outcome>[] = []
    queues.set(key, others)
    for (let group = [first]; group.length > 0; group = others.splice(0, countTogether(others)))
      await orLate(makeTogether(group))
    queues.delete(key)
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const change = { item, bytes: bytesOf(item), resolve, reject }
      const others = queues.get(key)
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

/**
 * Coalesces writes per key, because they would wait for the same lock: the first write starts at once, later writes
 * share the next transaction.
 */

const MAX_GROUP_WRITES = 100
/** Maximum bytes of a group. A larger write is a group by itself. */
const MAX_GROUP_BYTES = 4 * 1_048_576
/** Time after which the next group starts, even if the current group hangs. */
const MAX_WAIT_MS = 500

interface QueuedWrite<Item, Outcome> {
  readonly item: Item
  readonly bytes: number
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** `make` returns the outcomes in the order of the items. `bytesOf`: approximate size of an item in bytes. */
export function createMerger<Item, Outcome>(
  make: (items: readonly Item[]) => Promise<readonly Outcome[]>,
  bytesOf: (item: Item) => number = () => 0,
): (key: number, item: Item) => Promise<Outcome> {
  /** Writes that wait for the running group, by key. */
  const queues = new Map<number, QueuedWrite<Item, Outcome>[]>()

  async function runGroup(group: readonly QueuedWrite<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await make(group.map(({ item }) => item))
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  async function runGroups(key: number, first: QueuedWrite<Item, Outcome>): Promise<void> {
    const waiting: QueuedWrite<Item, Outcome>[] = []
    queues.set(key, waiting)
    for (let group = [first]; group.length > 0; group = waiting.splice(0, countInGroup(waiting)))
      await orTimeout(runGroup(group))
    queues.delete(key)
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const change = { item, bytes: bytesOf(item), resolve, reject }
      const waiting = queues.get(key)
      if (waiting === undefined) void runGroups(key, change)
      else waiting.push(change)
    })
}

/** Returns the number of waiting writes that fit into one group. */
function countInGroup(waiting: readonly { readonly bytes: number }[]): number {
  let count = 0
  let bytes = 0
  for (const each of waiting) {
    bytes += each.bytes
    if (count === MAX_GROUP_WRITES || (count > 0 && bytes > MAX_GROUP_BYTES)) break
    count++
  }
  return count
}

/** Resolves when the work has ended, or after `MAX_WAIT_MS`. */
async function orTimeout(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MAX_WAIT_MS).unref()
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}

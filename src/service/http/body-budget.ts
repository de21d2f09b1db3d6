/**
 * Bounds the memory of all request bodies together. Bytes count from their arrival until their create is answered, so a
 * client that declares much and sends nothing holds nothing. Small bodies are free: the number of connections bounds
 * them. No owner can hold more than is left free for the others: one alone gets half, and whoever comes next half of the
 * rest (the dynamic thresholds of switches with a shared buffer).
 */
export interface BodyBudget {
  /** Takes room for further bytes of a body that has `bodyBytes` already; false when there is none. */
  take(owner: number, bodyBytes: number, furtherBytes: number): boolean
  /** Gives back all that a body took. */
  release(owner: number, bodyBytes: number): void
  /** The bytes that count. */
  heldBytes(): number
}

export const FREE_BYTES = 65_536

const counted = (bytes: number): number => Math.max(0, bytes - FREE_BYTES)

export function createBodyBudget(totalBytes: number): BodyBudget {
  const byOwner = new Map<number, number>()
  let total = 0

  function add(owner: number, bytes: number): void {
    total += bytes
    const held = (byOwner.get(owner) ?? 0) + bytes
    if (held === 0) byOwner.delete(owner)
    else byOwner.set(owner, held)
  }

  return {
    take(owner, bodyBytes, furtherBytes) {
      const bytes = counted(bodyBytes + furtherBytes) - counted(bodyBytes)
      const held = byOwner.get(owner) ?? 0
      if (bytes > 0 && held + bytes > totalBytes - total - bytes) return false
      add(owner, bytes)
      return true
    },
    release: (owner, bodyBytes) => add(owner, -counted(bodyBytes)),
    heldBytes: () => total,
  }
}

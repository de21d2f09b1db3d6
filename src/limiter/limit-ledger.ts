/** Stores the slots of a rate limit: in this process, or in a file that all processes of the machine share. */

export type Purpose = 'create' | 'status'

/** A slot counts until one window after `settle`. */
export interface TakenSlot {
  settle(): void
}

export interface NoSlotYet {
  /** No slot can be free earlier. Infinity: not before a slot of this process is settled. */
  readonly retryInMs: number
}

/** Has at most one waiter for each purpose, whose turn it keeps until `take` succeeds or `withdraw` is called. */
export interface Ledger {
  take(purpose: Purpose): TakenSlot | NoSlotYet
  withdraw(purpose: Purpose): void
  /** Grants nothing for that long. */
  holdBack(ms: number): void
  /** The number of slots that count now. */
  held(): number
}

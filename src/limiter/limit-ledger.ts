/**
 * Stores the slots of a rate limit: in this process, in a file that all processes of the machine share, or in a Redis server
 * that machines share.
 */

export type Purpose = 'create' | 'status'

/** A slot counts until one window after `settle`. */
export interface TakenSlot {
  settle(): void
  /** Nothing was sent: the slot is free at once. */
  cancel(): void
}

export interface NoSlotYet {
  /** No slot can be free earlier. Infinity: not before a slot of this process is settled. */
  readonly retryInMs: number
}

export type SlotAnswer = TakenSlot | NoSlotYet

/** Has at most one waiter for each purpose, whose turn it keeps until `take` succeeds or `withdraw` is called. */
export interface Ledger {
  take(purpose: Purpose): SlotAnswer
  withdraw(purpose: Purpose): void
  /** Grants nothing for that long. */
  holdBack(ms: number): void
  /** The number of slots that count now. */
  held(): number
}

/** A ledger on another machine. One `take` at a time. */
export interface RemoteLedger extends Omit<Ledger, 'take'> {
  take(purpose: Purpose): Promise<SlotAnswer>
}

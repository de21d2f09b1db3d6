/** Where the places under a limit are kept: in this process, or in a file that every process of the machine shares. */

export type Purpose = 'create' | 'status'

/** A place that was taken; it counts until one window after `settle`. */
export interface Taken {
  settle(): void
}

export interface NotYet {
  /** Asking earlier brings nothing; Infinity: only when a place of this process is settled. */
  readonly againInMs: number
}

/** Asked for one waiter of each purpose at a time; it keeps that waiter's turn until it is served or withdrawn. */
export interface Ledger {
  take(purpose: Purpose): Taken | NotYet
  withdraw(purpose: Purpose): void
  /** Nobody leaves for that long. */
  holdBack(ms: number): void
  /** Places that count now. */
  held(): number
}

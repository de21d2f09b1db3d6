/** What the console reads, all of one account. Each function takes a bounded time, whatever the account has. */
import type { Kind } from '../../protocol/models.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import type { StoredRun } from '../stored-run.js'
import type { KeyDetails, LedgerEntry, LedgerEntryKind } from './account-store.js'

export interface KeyName {
  readonly id: number
  readonly name: string
}

/** Without its input, which can have 0.8 MB. */
export interface ListedRun extends Omit<StoredRun, 'input'> {
  /** Its place among all runs; a later run has a larger one. */
  readonly sequence: number
  /** The first characters (run-columns.ts); undefined when it is not a text. */
  readonly prompt: string | undefined
  readonly aspectRatio: string | undefined
  readonly key: KeyName | undefined
  /** In credits. */
  readonly price: number
}

export interface RunFilter {
  readonly accountId: number
  /** Only runs before or after this sequence. */
  readonly before?: number | undefined
  readonly after?: number | undefined
  readonly limit: number
  readonly status?: LocalStatus | undefined
  readonly kind?: Kind | undefined
  readonly model?: string | undefined
  /** `console`: runs without a key. */
  readonly key?: number | 'console' | undefined
  /** A part of the beginning of the prompt. ASCII letters match in any case. */
  readonly search?: string | undefined
}

/** With a filter there may be fewer runs than the limit, or none, and more to come. */
export interface FoundRuns {
  readonly runs: readonly ListedRun[]
  /** For `before` of the next page; undefined at the end. */
  readonly next: number | undefined
}

export interface KeyPage {
  readonly accountId: number
  /** Only keys before this id. */
  readonly before?: number | undefined
  readonly limit: number
}

/** A start of the run that did not finish it: its renderer crashed, or its worker shut down. */
export interface LostAttempt {
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly result: 'crashed' | 'returned'
}

export interface EntryFilter {
  readonly accountId: number
  readonly before?: number | undefined
  readonly limit: number
  readonly kind?: LedgerEntryKind | undefined
  readonly keyId?: number | undefined
  /** From this time on, and before that one. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
}

export interface ListedEntry extends LedgerEntry {
  readonly key: KeyName | undefined
}

export interface DaySpend {
  /** As 2026-01-31, in UTC. */
  readonly day: string
  /** Charges less refunds. */
  readonly credits: number
  /** Runs that were charged. */
  readonly runs: number
}

export interface ConsoleStore {
  findAccount(
    id: number,
  ): Promise<{ readonly name: string; readonly balance: number; readonly banned: boolean } | undefined>
  /** The newest first. */
  listRuns(filter: RunFilter): Promise<FoundRuns>
  /** In no order; those of other accounts are left out. */
  findRuns(ids: readonly string[], accountId: number): Promise<readonly ListedRun[]>
  /** The sequence of the newest run; 0 without any. */
  latestRun(accountId: number): Promise<number>
  /** The oldest first. */
  listLostAttempts(runId: string): Promise<readonly LostAttempt[]>
  /** The newest first. */
  listAccountKeys(page: KeyPage): Promise<readonly KeyDetails[]>
  /** Undefined when the account has no such key. */
  findAccountKey(id: number, accountId: number): Promise<KeyDetails | undefined>
  /** The newest first. */
  listAccountEntries(filter: EntryFilter): Promise<readonly ListedEntry[]>
  /** The oldest first; days without entries are left out. */
  spendPerDay(accountId: number, fromMs: number): Promise<readonly DaySpend[]>
}

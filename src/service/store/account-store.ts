/**
 * The store's contract for accounts, keys and credits. Credits are whole numbers. Every change of a balance is an entry
 * of an append-only ledger, written in the same transaction, so that an account's entries always sum to its balance.
 */
import type { RateLimit } from '../rate/rate-limiter.js'
import type { KeyRecord } from '../rules/key-checks.js'

export interface NewAccount {
  readonly name: string
  readonly credits: number
  readonly nowMs: number
}

export interface AccountRecord {
  readonly id: number
  readonly name: string
  readonly balance: number
  readonly banned: boolean
  readonly keys: number
  /** How many runs were created. */
  readonly runs: number
  readonly createdAtMs: number
}

/** What an administrator can set for a key. Undefined: no limit, from anywhere, no expiry, the published rate. */
export interface KeyTerms {
  readonly name: string
  readonly disabled: boolean
  /** In credits, over the key's lifetime. */
  readonly spendLimit: number | undefined
  /** In runs, over the key's lifetime. */
  readonly quota: number | undefined
  /** Addresses and networks (CIDR) from which it may be used. */
  readonly allowedIps: readonly string[] | undefined
  readonly expiresAtMs: number | undefined
  readonly rate: RateLimit | undefined
}

export interface NewKey extends Partial<KeyTerms> {
  readonly accountId: number
  readonly hash: string
  readonly prefix: string
  readonly name: string
  readonly nowMs: number
}

export interface KeyDetails extends KeyTerms {
  readonly id: number
  readonly account: string
  /** The first characters of the key; undefined for one that was created before they were kept. */
  readonly prefix: string | undefined
  readonly spent: number
  /** Runs that were accepted. */
  readonly used: number
  readonly createdAtMs: number
  /** To the minute. */
  readonly usedAtMs: number | undefined
  /** Until when the secret before the last rotation works. */
  readonly rotatesUntilMs: number | undefined
}

/** Another secret for a key: its terms and what it has used stay. */
export interface KeyRotation {
  readonly hash: string
  readonly prefix: string
  /** Until when the old secret works; the one before that ends now. */
  readonly oldUntilMs: number
}

export type LedgerEntryKind = 'added' | 'charge' | 'refund'

/** A line of the ledger. */
export interface LedgerEntry {
  readonly sequence: number
  readonly account: string
  readonly kind: LedgerEntryKind
  /** Negative for a charge or a removal. */
  readonly amount: number
  readonly runId: string | undefined
  readonly keyId: number | undefined
  readonly createdAtMs: number
}

export interface NewCredits {
  readonly account: string
  /** Negative to remove credits. */
  readonly amount: number
  readonly nowMs: number
}

export interface Verification {
  readonly accounts: number
  readonly entries: number
  readonly runs: number
  /** The sum of all balances. */
  readonly credits: number
  /** One sentence for each sum that is wrong. */
  readonly problems: readonly string[]
  /** Runs that were failed without a refund, because the database refused to record how they ended. No sum is wrong. */
  readonly notRecorded: readonly NotRecordedRun[]
}

export interface NotRecordedRun {
  readonly runId: string
  readonly account: string
  readonly credits: number
}

export interface AccountStore {
  /** The id of the account of this name, which is created when it does not exist. */
  ensureAccount(account: NewAccount): Promise<number>
  /** Undefined when the name is taken. */
  addAccount(account: NewAccount): Promise<AccountRecord | undefined>
  listAccounts(): Promise<readonly AccountRecord[]>
  /** Whether the account exists. */
  setBanned(name: string, banned: boolean): Promise<boolean>

  /** Here and when a key is enabled: throws `Refusal` (409 `too_many_keys`) when the account has `MAX_ACTIVE_KEYS`. */
  addKey(key: NewKey): Promise<number>
  /** Adds the key when the store has no key; whether it did. */
  addFirstKey(key: NewKey): Promise<boolean>
  /** By its hash, or that of the secret before the last rotation while it works. */
  findKey(hash: string, nowMs: number): Promise<KeyRecord | undefined>
  listKeys(): Promise<readonly KeyDetails[]>
  /** Sets the terms that are present, even to undefined. Whether the key exists. */
  changeKey(id: number, terms: Partial<KeyTerms>): Promise<boolean>
  /** Whether the key exists. */
  rotateKey(id: number, rotation: KeyRotation): Promise<boolean>
  /** Never sets it back: several nodes record the same key. */
  recordKeyUse(id: number, usedAtMs: number): Promise<void>

  /** The new balance; undefined when the account does not exist. `check` gets it first, and throws to refuse the change. */
  addCredits(credits: NewCredits, check: (balance: number) => void): Promise<number | undefined>
  /** The newest first; a negative limit means all. */
  listEntries(account: string, limit: number): Promise<readonly LedgerEntry[]>
  /** Recomputes all sums from one snapshot. */
  verify(): Promise<Verification>
}

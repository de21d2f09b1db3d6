/**
 * The store's contract for accounts, keys and credits. Credits are whole numbers. Every change of a balance adds an
 * entry to an append-only ledger in the same transaction, so that an account's entries always sum to its balance.
 */

import type { KeyRecord } from '../rules/key-checks.js'
import type { RateLimit } from '../rules/rate.js'
import type { SessionProof } from './sql.js'

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
  /** Number of runs that the account has created. */
  readonly runs: number
  readonly createdAtMs: number
}

/**
 * Settings of a key that an administrator can change. Undefined means no limit, any address, no expiry, or the
 * published rate limit.
 */
export interface KeyTerms {
  readonly name: string
  readonly disabled: boolean
  /** Lifetime limit in credits. */
  readonly spendLimit: number | undefined
  /** Lifetime limit in runs. */
  readonly quota: number | undefined
  /** IP addresses and CIDR ranges that may use the key. */
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
  /** Of a user who creates the key. Undefined: an administrator. */
  readonly by?: SessionProof | undefined
}

export interface KeyDetails extends KeyTerms {
  readonly id: number
  readonly account: string
  /** First characters of the key. Undefined for a key from a version that did not store them. */
  readonly prefix: string | undefined
  readonly spent: number
  /** Number of accepted runs. */
  readonly used: number
  readonly createdAtMs: number
  /** Time of the last use, accurate to one minute. */
  readonly usedAtMs: number | undefined
}

export type LedgerEntryKind = 'added' | 'charge' | 'refund'

/** A change of an account's balance. */
export interface LedgerEntry {
  readonly sequence: number
  readonly account: string
  readonly kind: LedgerEntryKind
  /** In credits. Negative for a charge and for removed credits. */
  readonly amount: number
  readonly runId: string | undefined
  readonly keyId: number | undefined
  readonly createdAtMs: number
}

export interface NewCredits {
  readonly account: string
  /** In credits. Negative to remove credits. */
  readonly amount: number
  readonly nowMs: number
}

export interface Verification {
  readonly accounts: number
  readonly entries: number
  readonly runs: number
  /** Sum of all balances. */
  readonly credits: number
  /** One sentence per wrong sum. */
  readonly problems: readonly string[]
}

export interface Verified extends Verification {
  /** Ids of failed runs with an unknown outcome, without the runs that an operator has decided on. */
  readonly unknown: readonly string[]
}

export interface AccountStore {
  /** Returns the id of the account with this name. Creates the account if it does not exist. */
  ensureAccount(account: NewAccount): Promise<number>
  /** Returns undefined if the name is taken. */
  addAccount(account: NewAccount): Promise<AccountRecord | undefined>
  listAccounts(): Promise<readonly AccountRecord[]>
  /** Returns false if the account does not exist. */
  setBanned(name: string, banned: boolean): Promise<boolean>

  /**
   * Returns the id. Throws `Refusal` (409 `too_many_keys`) if the account has `MAX_ACTIVE_KEYS`. `changeKey` also does
   * so when it enables a key.
   */
  addKey(key: NewKey): Promise<number>
  /** Adds the key only if the store has no key. Returns whether the key was added. */
  addFirstKey(key: NewKey): Promise<boolean>
  findKey(hash: string): Promise<KeyRecord | undefined>
  listKeys(): Promise<readonly KeyDetails[]>
  /** Sets every term that `terms` contains, even if its value is undefined. Returns false if the key does not exist. */
  changeKey(id: number, terms: Partial<KeyTerms>, by?: SessionProof): Promise<boolean>
  /** Never moves the time back, because several nodes record the use of the same key. */
  recordKeyUse(id: number, usedAtMs: number): Promise<void>

  /**
   * Returns the new balance, or undefined if the account does not exist. `check` receives the new balance before the
   * change, and throws to refuse it.
   */
  addCredits(credits: NewCredits, check: (balance: number) => void): Promise<number | undefined>
  /** Newest first. */
  listEntries(account: string, limit: number): Promise<readonly LedgerEntry[]>
  /** Recomputes all sums from one snapshot of the database. */
  verify(): Promise<Verified>
}

/**
 * What the service asks of its memory about accounts, keys and credits. Credits are whole numbers. Every change of a
 * balance is an entry of a ledger that is only ever added to, written in the same transaction, so that the entries of an
 * account always sum to its balance.
 */
import type { KeyRecord } from '../rules/caller.js'

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
  /** How many runs it ever made. */
  readonly runs: number
  readonly createdAtMs: number
}

/** What an administrator sets of a key. Undefined: no limit, from anywhere, for ever. */
export interface KeyTerms {
  readonly name: string
  readonly disabled: boolean
  /** Credits that it may spend in its whole life. */
  readonly spendLimit: number | undefined
  /** Runs that it may make in its whole life. */
  readonly quota: number | undefined
  /** Addresses and networks (CIDR) that it may be used from. */
  readonly allowedIps: readonly string[] | undefined
  readonly expiresAtMs: number | undefined
}

export interface NewKey extends Partial<KeyTerms> {
  readonly accountId: number
  readonly hash: string
  readonly name: string
  readonly nowMs: number
}

export interface KeyDetails extends KeyTerms {
  readonly id: number
  readonly account: string
  readonly spent: number
  /** Runs that were accepted with it. */
  readonly used: number
  readonly createdAtMs: number
}

export type LedgerEntryKind = 'added' | 'charge' | 'refund'

/** A line of the ledger. */
export interface LedgerEntry {
  readonly sequence: number
  readonly account: string
  readonly kind: LedgerEntryKind
  /** Negative for what was taken. */
  readonly amount: number
  readonly runId: string | undefined
  readonly keyId: number | undefined
  readonly createdAtMs: number
}

export interface NewCredits {
  readonly account: string
  /** Negative to take some away. */
  readonly amount: number
  readonly nowMs: number
}

export interface Verification {
  readonly accounts: number
  readonly entries: number
  readonly runs: number
  /** The sum of all balances. */
  readonly credits: number
  /** A sentence for each sum that does not add up; none when all is well. */
  readonly problems: readonly string[]
}

export interface AccountStore {
  /** The account of this name, made with so many credits if there is none; its id. */
  ensureAccount(account: NewAccount): Promise<number>
  /** Undefined when there is one of this name. */
  addAccount(account: NewAccount): Promise<AccountRecord | undefined>
  listAccounts(): Promise<readonly AccountRecord[]>
  /** Whether there is such an account. */
  setBanned(name: string, banned: boolean): Promise<boolean>

  addKey(key: NewKey): Promise<number>
  /** Adds the key if there is none at all; whether it did. */
  addFirstKey(key: NewKey): Promise<boolean>
  findKey(hash: string): Promise<KeyRecord | undefined>
  listKeys(): Promise<readonly KeyDetails[]>
  /** What is named is set, even to undefined. Whether there is such a key. */
  changeKey(id: number, terms: Partial<KeyTerms>): Promise<boolean>

  /** The new balance; undefined without such an account. Throws what `may` throws for that balance, and does nothing. */
  addCredits(credits: NewCredits, may: (balance: number) => void): Promise<number | undefined>
  /** The newest first; a negative limit is none. */
  listEntries(account: string, limit: number): Promise<readonly LedgerEntry[]>
  /** Adds everything up anew, all of it as of one moment. */
  verify(): Promise<Verification>
}

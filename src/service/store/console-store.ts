/**
 * The store's contract for the console's data, for one account at a time. Each function takes a bounded time, even for
 * a large account.
 */
import type { Kind } from '../../protocol/models.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import type { KeyDetails, LedgerEntry, LedgerEntryKind } from './account-store.js'
import type { StoredRun } from './run.js'
import type { SessionProof } from './sql.js'

export interface KeyName {
  readonly id: number
  readonly name: string
}

/** A run in a list. It has no input, which can be 1 MB. */
export interface ListedRun extends Omit<StoredRun, 'input'> {
  /** Number of the run among all runs. A later run has a larger number. */
  readonly sequence: number
  /** First 1,000 characters of the prompt. Undefined if the prompt is not a string. */
  readonly prompt: string | undefined
  readonly aspectRatio: string | undefined
  readonly key: KeyName | undefined
  /** Price in credits. */
  readonly price: number
  readonly isRefunded: boolean
  /** Number of renders that crashed. */
  readonly crashes: number
  /** Whether its outputs were removed. Their URLs stay. */
  readonly isRemoved: boolean
}

interface Page {
  /** Lists only rows with a smaller sequence, and only keys with a smaller id. */
  readonly before?: number | undefined
  readonly limit: number
}

export interface AccountPage extends Page {
  readonly accountId: number
}

export interface RunFilter extends Page {
  /** Undefined: all accounts. */
  readonly accountId: number | undefined
  /** Lists only runs with a larger sequence. */
  readonly after?: number | undefined
  readonly status?: LocalStatus | undefined
  readonly kind?: Kind | undefined
  readonly model?: string | undefined
  /** Key id, or `console` for runs without a key. */
  readonly key?: number | 'console' | undefined
  /** Text to find in the stored part of the prompt. Ignores case for ASCII letters only. */
  readonly search?: string | undefined
}

/** A page of runs. With a filter, a page can have fewer runs than the limit, or none, although more pages follow. */
export interface FoundRuns {
  readonly runs: readonly ListedRun[]
  /** Value of `before` for the next page. Undefined on the last page. */
  readonly next: number | undefined
}

export interface EntryFilter extends AccountPage {
  readonly kind?: LedgerEntryKind | undefined
  readonly keyId?: number | undefined
  /** Start (inclusive) and end (exclusive) of the period. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
}

export interface ListedEntry extends LedgerEntry {
  readonly key: KeyName | undefined
}

/** `next`: continue with the entries before it. There can be more, also if a page has no entries. */
export interface FoundEntries {
  readonly entries: readonly ListedEntry[]
  readonly next: number | undefined
}

export interface DaySpend {
  /** UTC date, for example 2026-01-31. */
  readonly day: string
  /** Charges minus refunds. */
  readonly credits: number
  /** Number of charged runs. */
  readonly runs: number
}

export interface ConsoleStore {
  findAccount(
    id: number,
  ): Promise<{ readonly name: string; readonly balance: number; readonly banned: boolean } | undefined>
  /** Newest first. */
  listRuns(filter: RunFilter): Promise<FoundRuns>
  /** Returns the runs in any order. Omits runs of other accounts. */
  findRuns(ids: readonly string[], accountId: number): Promise<readonly ListedRun[]>
  /** Newest first. */
  listAccountKeys(page: AccountPage): Promise<readonly KeyDetails[]>
  /** Returns undefined if the account has no key with this id. */
  findAccountKey(id: number, accountId: number): Promise<KeyDetails | undefined>
  /** Newest first. */
  listAccountEntries(filter: EntryFilter): Promise<FoundEntries>
  /** Oldest day first. Omits days without entries. */
  spendPerDay(accountId: number, fromMs: number): Promise<readonly DaySpend[]>
}

/** The store's contract for the console's users. Tokens and codes are stored only as SHA-256 (hex). */

export interface UserRecord {
  readonly id: number
  /** Lowercase. */
  readonly email: string
  readonly accountId: number
  readonly account: string
  /** Whether the account is banned. */
  readonly banned: boolean
  /** Hashed password (rules/credentials.ts). Undefined until the user sets one. */
  readonly password: string | undefined
  readonly createdAtMs: number
}

export interface UserDetails extends UserRecord {
  /** Number of sessions that have not expired. */
  readonly sessions: number
  /** Last use of any session of the user. */
  readonly lastSeenAtMs: number | undefined
}

/** A session or a sign-in link. */
export interface NewToken {
  readonly hash: string
  readonly userId: number
  readonly nowMs: number
  readonly expiresAtMs: number
}

export interface NewSession extends NewToken {
  /** Whether a sign-in link started the session. If true, the user can set a password without the current one. */
  readonly fromLink: boolean
  readonly address: string | undefined
  readonly userAgent: string | undefined
}

/** The fields for a response about a session. */
export interface CurrentSession {
  readonly hash: string
  readonly user: UserRecord
  readonly fromLink: boolean
  readonly expiresAtMs: number
}

export interface SessionRecord extends CurrentSession {
  readonly id: number
  readonly address: string | undefined
  readonly userAgent: string | undefined
  readonly createdAtMs: number
  readonly usedAtMs: number
}

/** Maximum number of users of an account. */
export const MAX_ACCOUNT_USERS = 200

/**
 * Expired sessions and links are not found. Removing a user also removes the user's sessions and links.
 */
export interface UserStore {
  /** Returns the id, or undefined if the email is taken. Throws if the account does not exist. */
  addUser(user: {
    readonly email: string
    readonly accountId: number
    readonly nowMs: number
    /** Of a user who adds the other one. Undefined: an administrator. */
    readonly by?: SessionProof | undefined
  }): Promise<number | undefined>
  findUser(email: string): Promise<UserRecord | undefined>
  /** Oldest first. All users, or at most `MAX_ACCOUNT_USERS` of an account. */
  listUsers(nowMs: number, accountId?: number): Promise<readonly UserDetails[]>
  /** Returns false if the user does not exist, and for `by` also if it is of another account, or `by` itself. */
  removeUser(id: number, by?: SessionProof): Promise<boolean>
  /**
   * Sets the password, and ends all other sessions and links of the user. The session `keptSession` then counts
   * as started with a password. Throws `Refusal` (401) if that session has ended.
   */
  setPassword(userId: number, password: string, keptSession: string): Promise<void>

  /** Adds a link, and removes expired links of all users. */
  addLink(link: NewToken, by?: SessionProof): Promise<void>
  /**
   * Removes the link and returns its user. Returns undefined if the link does not exist, or if a concurrent call has
   * used it.
   */
  useLink(hash: string, nowMs: number): Promise<UserRecord | undefined>

  /** Adds a session, and removes expired sessions of all users. */
  addSession(session: NewSession): Promise<void>
  findSession(hash: string, nowMs: number): Promise<SessionRecord | undefined>
  extendSession(
    hash: string,
    times: { readonly usedAtMs: number; readonly expiresAtMs: number },
  ): Promise<void>
  endSession(hash: string): Promise<void>
  /** Returns false if the user has no session with this id. */
  endSessionById(userId: number, id: number): Promise<boolean>
  /** Ends all sessions and links of the user. */
  endSessions(userId: number): Promise<void>
  /** Most recently used first, at most 100. */
  listSessions(userId: number, nowMs: number): Promise<readonly SessionRecord[]>
}

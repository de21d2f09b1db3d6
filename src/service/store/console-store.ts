/** What the console reads, all of one account. Each function takes a bounded time, however large the account is. */
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

/** The store's contract for the console's users. Of tokens and codes only the SHA-256 (hex) is stored. */

export interface UserRecord {
  readonly id: number
  /** In lower case. */
  readonly email: string
  readonly accountId: number
  readonly account: string
  /** Whether the account is banned. */
  readonly banned: boolean
  /** The stored form (rules/credentials.ts); undefined until it is set. */
  readonly password: string | undefined
  readonly createdAtMs: number
}

export interface UserDetails extends UserRecord {
  /** That have not expired. */
  readonly sessions: number
  /** When a session of the user was last used. */
  readonly lastSeenAtMs: number | undefined
}

interface NewSession {
  readonly hash: string
  readonly userId: number
  /** Whether a link began it: then the password can be set without the current one. */
  readonly fromLink: boolean
  readonly address: string | undefined
  readonly userAgent: string | undefined
  readonly nowMs: number
  readonly expiresAtMs: number
}

export interface SessionRecord {
  readonly id: number
  readonly hash: string
  readonly user: UserRecord
  readonly fromLink: boolean
  readonly address: string | undefined
  readonly userAgent: string | undefined
  readonly createdAtMs: number
  readonly usedAtMs: number
  readonly expiresAtMs: number
}

/** What `rushes login --web` was granted, until it is exchanged for a key. */
export interface LoginRecord {
  readonly userId: number
  readonly accountId: number
  readonly banned: boolean
  /** SHA-256 (base64url) of the verifier. */
  readonly challenge: string
  /** Of the key. */
  readonly name: string
}

/** An expired session, link or code is not found. Those of a removed user end with the user. */
export interface UserStore {
  /** The id; undefined when the email is taken. Throws when the account does not exist. */
  addUser(user: {
    readonly email: string
    readonly accountId: number
    readonly nowMs: number
  }): Promise<number | undefined>
  findUser(email: string): Promise<UserRecord | undefined>
  listUsers(nowMs: number): Promise<readonly UserDetails[]>
  /** Whether there was one. */
  removeUser(email: string): Promise<boolean>
  /** Ends all other sessions, links and codes of the user; the kept one then counts as begun with a password. */
  setPassword(userId: number, password: string, keptSession: string): Promise<void>

  /** Also removes expired links of all users. */
  addLink(link: {
    readonly hash: string
    readonly userId: number
    readonly nowMs: number
    readonly expiresAtMs: number
  }): Promise<void>
  /** Removes the link; undefined when there is none. Of several callers one gets it. */
  useLink(hash: string, nowMs: number): Promise<UserRecord | undefined>

  /** Also removes expired sessions of all users. */
  addSession(session: NewSession): Promise<void>
  findSession(hash: string, nowMs: number): Promise<SessionRecord | undefined>
  extendSession(
    hash: string,
    times: { readonly usedAtMs: number; readonly expiresAtMs: number },
  ): Promise<void>
  endSession(hash: string): Promise<void>
  /** Whether the user had it. */
  endSessionById(userId: number, id: number): Promise<boolean>
  /** Also ends all links and codes of the user. */
  endSessions(userId: number): Promise<void>
  /** The last used first, at most 100. */
  listSessions(userId: number, nowMs: number): Promise<readonly SessionRecord[]>

  addLogin(login: {
    readonly hash: string
    readonly userId: number
    readonly challenge: string
    readonly name: string
    readonly nowMs: number
    readonly expiresAtMs: number
  }): Promise<void>
  /** Removes the code; undefined when there is none. Of several callers one gets it. */
  useLogin(hash: string, nowMs: number): Promise<LoginRecord | undefined>
}

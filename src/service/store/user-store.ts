/** The store's contract for the console's users. Of tokens and codes only the SHA-256 (hex) is stored. */

export interface UserRecord {
  readonly id: number
  /** In lower case. */
  readonly email: string
  readonly accountId: number
  readonly account: string
  /** Whether the account is banned. */
  readonly banned: boolean
  /** The stored form (rules/password.ts); undefined until it is set. */
  readonly password: string | undefined
  readonly createdAtMs: number
}

export interface UserDetails extends UserRecord {
  /** That have not expired. */
  readonly sessions: number
  /** When a session of the user was last used. */
  readonly lastSeenAtMs: number | undefined
}

export interface NewSession {
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

  /** Also removes what has expired of all users. */
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

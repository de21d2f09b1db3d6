/** Rows about the console's users to the values of the contract, for both databases. */
import { isSet, numberOr, type Row, textOr } from './shared-rows.js'
import type { LoginRecord, SessionRecord, UserDetails, UserRecord } from './user-store.js'

/** Of a user, beside the columns of another table. */
export const USER_COLUMNS = `users.id AS user_id, users.email, users.account_id, users.password,
      users.created_at AS user_created_at, accounts.name AS account, accounts.banned`

export const userOfRow = (row: Row): UserRecord => ({
  id: Number(row.user_id),
  email: String(row.email),
  accountId: Number(row.account_id),
  account: String(row.account),
  banned: isSet(row.banned),
  password: textOr(row.password),
  createdAtMs: Number(row.user_created_at),
})

export const userDetailsOfRow = (row: Row): UserDetails => ({
  ...userOfRow(row),
  sessions: Number(row.sessions),
  lastSeenAtMs: numberOr(row.last_seen_at),
})

export const sessionOfRow = (row: Row): SessionRecord => ({
  id: Number(row.id),
  hash: String(row.hash),
  user: userOfRow(row),
  fromLink: isSet(row.from_link),
  address: textOr(row.address),
  userAgent: textOr(row.user_agent),
  createdAtMs: Number(row.created_at),
  usedAtMs: Number(row.used_at),
  expiresAtMs: Number(row.expires_at),
})

export const loginOfRow = (row: Row): LoginRecord => ({
  userId: Number(row.user_id),
  accountId: Number(row.account_id),
  banned: isSet(row.banned),
  challenge: String(row.challenge),
  name: String(row.name),
})

/** Read-only queries for shell completion: the names of accounts, keys and users. */
import { readRows } from '../../../host/database-file.js'

export interface AccountNames {
  readonly accounts: readonly { readonly name: string; readonly balance: number }[]
  readonly keys: readonly { readonly id: number; readonly name: string; readonly account: string }[]
}

/** Throws if the file does not exist, or has an older format without these columns. */
export const readAccountNames = (path: string): AccountNames => ({
  accounts: readRows(path, 'SELECT name, balance FROM accounts ORDER BY id LIMIT 1000').map((row) => ({
    name: String(row.name),
    balance: Number(row.balance),
  })),
  keys: readRows(
    path,
    `SELECT keys.id, keys.name, accounts.name AS account
     FROM keys JOIN accounts ON accounts.id = keys.account_id ORDER BY keys.id LIMIT 1000`,
  ).map((row) => ({ id: Number(row.id), name: String(row.name), account: String(row.account) })),
})

/** Throws as `readAccountNames` does. */
export const readUsers = (path: string): readonly { readonly email: string; readonly account: string }[] =>
  readRows(
    path,
    `SELECT users.email, accounts.name AS account
     FROM users JOIN accounts ON accounts.id = users.account_id ORDER BY users.id LIMIT 1000`,
  ).map((row) => ({ email: String(row.email), account: String(row.account) }))

/** Accounts and keys by name, for whoever is in a hurry and may not leave a trace: the file is read as it lies there. */
import { readRows } from '../../../host/readonly-database.js'

export interface AccountNames {
  readonly accounts: readonly { readonly name: string; readonly balance: number }[]
  readonly keys: readonly { readonly id: number; readonly name: string; readonly account: string }[]
}

/** Throws when there is no such file, and when it is of a format that lacks what is asked for. */
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

/** The JSON output of `rushes admin`. */
import { integer, list, orNull, record, type Schema, text, time } from './shapes.js'

const flag = (description: string): Schema => ({ description, type: 'boolean' })
const credits = (description: string): Schema => integer(`${description}, in credits`)

export const ACCOUNT_SCHEMA = record('An account of the local service.', {
  id: integer('account number'),
  name: text('account name'),
  balance: credits('current balance'),
  banned: flag('whether all its requests are refused'),
  keys: integer('number of keys'),
  runs: integer('number of runs created'),
  created_at: time('creation time'),
})

const KEY = {
  id: integer('key number'),
  account: text('account of the key'),
  name: text('key name'),
  disabled: flag('whether the key is disabled'),
  spend_limit: orNull(credits('lifetime spend limit')),
  spent: credits('spent so far'),
  quota: orNull(integer('maximum number of runs')),
  used: integer('number of runs created'),
  allowed_ips: orNull(list('addresses that may use the key', text('IP address or CIDR range'))),
  expires_at: orNull(time('expiry')),
  created_at: time('creation time'),
}

export const KEY_SCHEMA = record('A key of the local service, without the secret.', KEY)

export const NEW_KEY_SCHEMA = record('A key that was just created.', {
  ...KEY,
  api_key: text('the secret key, shown only once: only its hash is stored'),
})

export const CREDITS_SCHEMA = record('An entry of the ledger.', {
  sequence: integer('entry number; grows with each entry'),
  account: text('account whose balance changed'),
  kind: text('reason', { enum: ['added', 'charge', 'refund'] }),
  amount: { description: 'change in credits; negative for a charge', type: 'integer' },
  run_id: orNull(text('the run that was charged or refunded')),
  key: orNull(integer('number of the key that created the run')),
  created_at: time('time of the entry'),
})

export const VERIFY_SCHEMA = record('The result of recalculating every balance.', {
  ok: flag('whether all balances match the ledger'),
  accounts: integer('number of accounts'),
  entries: integer('number of ledger entries'),
  runs: integer('number of runs'),
  credits: credits('the sum of all balances'),
  problems: list('what does not match, one sentence each', text('for people; it may change')),
})

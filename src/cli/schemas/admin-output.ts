/** The JSON output of `rushes admin`. */
import { integer, list, orNull, record, type Schema, text, time } from './shapes.js'

const flag = (description: string): Schema => ({ description, type: 'boolean' })
const credits = (description: string): Schema => integer(`${description}, in credits`)

export const ACCOUNT_SCHEMA = record('An account of the local service.', {
  id: integer('its number'),
  name: text('its name'),
  balance: credits('its balance'),
  banned: flag('whether its requests are refused'),
  keys: integer('number of its keys'),
  runs: integer('number of its runs'),
  created_at: time('when it was created'),
})

const KEY = {
  id: integer('its number'),
  account: text('name of its account'),
  name: text('its name'),
  disabled: flag('whether it is disabled'),
  spend_limit: orNull(credits('maximum over its lifetime')),
  spent: credits('used so far'),
  quota: orNull(integer('maximum number of runs over its lifetime')),
  used: integer('number of its runs'),
  allowed_ips: orNull(list('allowed addresses; null: any', text('IP address or CIDR range'))),
  expires_at: orNull(time('when it expires; null: never')),
  created_at: time('when it was created'),
}

export const KEY_SCHEMA = record('A key of the local service; never the key itself.', KEY)

export const NEW_KEY_SCHEMA = record('A new key.', {
  ...KEY,
  api_key: text('the key itself; shown only here'),
})

export const CREDITS_SCHEMA = record('An entry of the ledger.', {
  sequence: integer('its number; higher for later entries'),
  account: text('name of the account'),
  kind: text('reason', { enum: ['added', 'charge', 'refund'] }),
  amount: { description: 'change of the balance in credits; negative for charges', type: 'integer' },
  run_id: orNull(text('the run that was charged or refunded')),
  key: orNull(integer('number of the key that created the run')),
  created_at: time('when it was recorded'),
})

export const VERIFY_SCHEMA = record('The result of recomputing every balance.', {
  ok: flag('whether all balances are correct'),
  accounts: integer('number of accounts'),
  entries: integer('number of ledger entries'),
  runs: integer('number of runs'),
  credits: credits('sum of all balances'),
  problems: list('one sentence for each difference', text('for people; may change')),
})

/** The JSON output of `rushes admin`. */
import { integer, list, orNull, record, type Schema, text, time } from './shapes.js'

const flag = (description: string): Schema => ({ description, type: 'boolean' })
const credits = (description: string): Schema => integer(`${description}, in credits`)

export const ACCOUNT_SCHEMA = record('An account of the local service.', {
  id: integer('its number'),
  name: text('its name'),
  balance: credits('what it has'),
  banned: flag('whether everything that it asks is refused'),
  keys: integer('how many keys it has'),
  runs: integer('how many runs it ever made'),
  created_at: time('when it was made'),
})

const KEY = {
  id: integer('its number'),
  account: text('whose it is'),
  name: text('what it is called'),
  disabled: flag('whether it is refused'),
  spend_limit: orNull(credits('what it may spend in its life')),
  spent: credits('what it has spent'),
  quota: orNull(integer('how many runs it may make in its life')),
  used: integer('how many runs it has made'),
  allowed_ips: orNull(list('where it may be used from', text('an address, or a network in CIDR notation'))),
  expires_at: orNull(time('until when it is good')),
  created_at: time('when it was made'),
}

export const KEY_SCHEMA = record('A key of the local service; never the key itself.', KEY)

export const NEW_KEY_SCHEMA = record('A key that was made just now.', {
  ...KEY,
  api_key: text('the key itself, this once: only its hash is kept'),
})

export const CREDITS_SCHEMA = record('An entry of the ledger.', {
  sequence: integer('its number; later entries have greater ones'),
  account: text('whose balance it changed'),
  kind: text('why', { enum: ['added', 'charge', 'refund'] }),
  amount: { description: 'by how much, in credits; negative for what was taken', type: 'integer' },
  run_id: orNull(text('the run that was charged or given back')),
  key: orNull(integer('the number of the key that made the run')),
  created_at: time('when'),
})

export const VERIFY_SCHEMA = record('Every balance, added up anew.', {
  ok: flag('whether everything fits'),
  accounts: integer('how many accounts there are'),
  entries: integer('how many entries the ledger has'),
  runs: integer('how many runs there are'),
  credits: credits('the sum of all balances'),
  problems: list('what does not fit, a sentence each', text('for people; it may change')),
})

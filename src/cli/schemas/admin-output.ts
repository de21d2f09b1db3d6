/** Schemas of the JSON output of `admin`. */
import {
  flag,
  integer,
  type JsonSchema,
  list,
  orNull,
  record,
  text,
  time,
} from '../../protocol/json-schema.js'
import { KINDS } from '../../protocol/models.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'

const credits = (description: string): JsonSchema => integer(`${description}, in credits`)

export const ACCOUNT_SCHEMA = record(
  {
    id: integer('Account number'),
    name: text('Account name'),
    balance: credits('Current balance'),
    banned: flag('Whether all its requests are refused'),
    keys: integer('Number of keys'),
    runs: integer('Number of runs created'),
    created_at: time('Creation time'),
  },
  'An account of the local service.',
)

export const MODEL_USE_SCHEMA = record(
  {
    model: text('Model name'),
    kind: text('Kind', { enum: KINDS }),
    workers: integer('Number of running workers that render it'),
    queued: integer('Number of queued runs'),
    processing: integer('Number of runs in processing'),
  },
  'A model of the local service: one that a worker renders, or of an unfinished run.',
)

const KEY = {
  id: integer('Key number'),
  account: text('Account of the key'),
  name: text('Key name'),
  prefix: orNull(text('First characters of the secret; null for a key of an earlier version')),
  disabled: flag('Whether the key is disabled'),
  spend_limit: orNull(credits('Lifetime spend limit')),
  spent: credits('Spent so far'),
  quota: orNull(integer('Maximum number of runs')),
  used: integer('Number of runs created'),
  allowed_ips: orNull(list(text('IP address or CIDR range'), 'IP addresses that may use the key')),
  rate: orNull(text('Rate limit of its own, as `100/10s`')),
  expires_at: orNull(time('Expiry time')),
  created_at: time('Creation time'),
  last_used_at: orNull(time('Last use, to the minute')),
  archived_at: orNull(time('Time when the key was archived')),
}

export const KEY_SCHEMA = record(KEY, 'A key of the local service, without the secret.')

export const NEW_KEY_SCHEMA = record(
  {
    ...KEY,
    api_key: text('The secret key, shown only once: only its hash is stored'),
  },
  'A key that was just created.',
)

const USER = {
  id: integer('User number'),
  email: text('Email, in lower case'),
  account: text('Account of the user'),
  has_password: flag('Whether a password is set'),
  sessions: integer('Number of sessions that have not expired'),
  last_seen_at: orNull(time('Last use of a session')),
  created_at: time('Creation time'),
}

export const USER_SCHEMA = record(USER, 'A user of the console.')

export const USER_LINK_SCHEMA = record(
  {
    ...USER,
    link: text('The link, shown only once; it works once, within 15 minutes'),
  },
  'A user of the console, with a link that signs in.',
)

export const CREDITS_SCHEMA = record(
  {
    sequence: integer('Entry number; grows with each entry'),
    account: text('Account whose balance changed'),
    kind: text('Reason', { enum: ['added', 'charge', 'refund'] }),
    amount: { description: 'Change in credits; negative for a charge', type: 'integer' },
    run_id: orNull(text('Run that was charged or refunded')),
    key: orNull(integer('Number of the key that created the run')),
    created_at: time('Time of the entry'),
  },
  'An entry of the ledger.',
)

export const ADMIN_RUN_SCHEMA = record(
  {
    id: text('Run id'),
    model: text('Model name'),
    kind: text('Kind', { enum: KINDS }),
    status: text('Status', { enum: LOCAL_STATUSES }),
    error: orNull(
      record(
        { code: text('Stable code'), message: text('Text for people; may change') },
        'Why the run failed, or what its cancellation means for the price',
      ),
    ),
    created_at: time('Creation time'),
    started_at: orNull(time('Time when the render started')),
    finished_at: orNull(time('Time of the final status')),
  },
  'A run of the local service.',
)

const LEDGER = {
  accounts: integer('Number of accounts'),
  entries: integer('Number of ledger entries'),
  runs: integer('Number of runs'),
  credits: credits('Sum of all balances'),
}

const problems = (description: string): JsonSchema => list(text('Text for people; may change'), description)

export const VERIFY_SCHEMA = record(
  {
    ok: flag('Whether the file is intact and all balances match the ledger'),
    ...LEDGER,
    problems: problems('Damage and differences, one sentence each'),
    outcome_unknown: problems(
      'Ids of failed runs that a provider may have accepted, and that an operator must decide on',
    ),
  },
  'The result of checking the database and every balance.',
)

export const MIGRATE_SCHEMA = record(
  {
    ...LEDGER,
    outputs: integer('Number of outputs'),
    files: orNull(
      record(
        {
          copied: integer('Files copied'),
          bytes: integer('Their size'),
          present: integer('Files that were in the storage already'),
          missing: integer('Outputs without a file, with --allow-missing'),
        },
        'The files that were copied; null without --storage.',
      ),
    ),
  },
  'The data of a service that was moved to another database.',
)

export const BACKUP_SCHEMA = record(
  {
    path: text('The file, as it was given'),
    bytes: integer('Size of the file'),
    ...LEDGER,
    problems: problems('Balances that do not match the ledger, one sentence each; the copy is complete'),
  },
  'A complete copy of the database.',
)

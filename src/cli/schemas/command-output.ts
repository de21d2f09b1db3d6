/** Schemas of the JSON output of `doctor`, `serve`, `models`, `config`, `gallery`, `forget` and `admin`. */
import {
  bytes,
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
import { ROLES } from '../../service/names.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'

export const DOCTOR_SCHEMA = record(
  {
    check: text('Name of the check'),
    status: text('Result', { enum: ['ok', 'warning', 'failed', 'skipped'] }),
    message: text('Text for people; may change'),
    advice: orNull(text('Next step; may have several lines')),
  },
  'One line for each check.',
)

export const SERVE_SCHEMA: JsonSchema = {
  description: 'One line, printed when the service listens.',
  type: 'object',
  required: ['url', 'role', 'data', 'models'],
  properties: {
    url: text('URL of the service, for RUSHES_BASE_URL'),
    role: text('What this node does', { enum: ROLES }),
    data: text('Folder of the runs and outputs'),
    database: text('URL of the PostgreSQL database, without its password; only with --database'),
    api_key: text('API key, for RUSHES_API_KEY; only on the first start of a data folder'),
    models: record(
      Object.fromEntries(
        KINDS.map((kind) => [kind, text(`The ${kind} model, for RUSHES_${kind.toUpperCase()}_MODEL`)]),
      ),
      'Names of the models.',
    ),
    console: text('Link that signs in to the console once; only on the first start'),
    metrics_url: text('URL of the Prometheus metrics; only with --metrics-port'),
  },
}

const PARAMETER: JsonSchema = {
  description: 'A parameter, as JSON Schema',
  type: 'object',
  required: ['type', 'description'],
  properties: {
    type: text('Type of its values', { enum: ['string', 'integer', 'number', 'boolean', 'array'] }),
    description: text('Meaning'),
    enum: list(
      {
        description: 'Value',
        type: ['string', 'number'],
      },
      'Allowed values; without it, any value of the type',
    ),
    minimum: { description: 'Smallest number', type: 'number' },
    maximum: { description: 'Largest number', type: 'number' },
    items: record({ type: text('Type of an entry', { const: 'string' }) }, 'Entries of a list'),
    maxItems: { description: 'Maximum number of entries', type: 'integer', minimum: 1 },
  },
}

export const MODEL_SCHEMA = record(
  {
    $schema: text('Version of JSON Schema'),
    type: text('Type of the input', { const: 'object' }),
    title: text('Kind', { enum: KINDS }),
    description: text('Description of the model'),
    required: list(text('Name of a parameter'), 'Required parameters'),
    properties: {
      description: 'Parameters by name',
      type: 'object',
      additionalProperties: PARAMETER,
    },
  },
  'With a name: the input of that model, as JSON Schema.',
)

export const MODELS_SCHEMA = record(
  Object.fromEntries(
    KINDS.map((kind) => [kind, { ...MODEL_SCHEMA, description: `Input of the ${kind} model` }]),
  ),
  'The inputs of the models.',
)

export const CONFIG_LIST_SCHEMA: JsonSchema = {
  description: 'The settings of the profile; never the API key.',
  type: 'object',
  properties: Object.fromEntries(CONFIG_KEYS.map((key) => [key, text(settingOfKey(key).about)])),
}

export const CONFIG_GET_SCHEMA = text('The value of the setting.')

export const CONFIG_PATH_SCHEMA = record(
  {
    path: text('Absolute path'),
  },
  'Path of the config file, which may not exist yet.',
)

export const GALLERY_SCHEMA = record(
  {
    path: text('Path of the page'),
    runs: integer('Number of runs on it'),
    files: integer('Number of files on it'),
    bytes: bytes('Size of the page, without the files'),
    left_out: record(
      {
        missing: integer('Files moved, changed or deleted'),
        not_downloaded: integer('Without a downloaded file'),
      },
      'Number of runs that are not on it, although they succeeded.',
    ),
  },
  'The page that was written.',
)

export const FORGET_SCHEMA = record(
  {
    forgotten: text('Key of the row, or id of the run'),
  },
  'One line for each removed row.',
)

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
  rotates_until: orNull(
    time('Time until which the secret before the last rotation works; null when it does not'),
  ),
}

export const KEY_SCHEMA = record(KEY, 'A key of the local service, without the secret.')

export const NEW_KEY_SCHEMA = record(
  {
    ...KEY,
    api_key: text('The secret key, shown only once: only its hash is stored'),
  },
  'A key that was just created or rotated.',
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
    not_recorded: list(
      record(
        {
          run_id: text('The run'),
          account: text('Name of its account'),
          credits: credits('Its price'),
        },
        'One run.',
      ),
      'Runs that failed with `not_recorded`: nothing was refunded',
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

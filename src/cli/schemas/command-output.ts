/** Schemas of the JSON output of `doctor`, `serve`, `models`, `config`, `gallery`, `open`, `spend` and `forget`. */

import { SPEND_GROUPINGS } from '../../journal/spend.js'
import {
  bytes,
  flag,
  integer,
  type JsonSchema,
  list,
  number,
  orNull,
  record,
  text,
} from '../../protocol/json-schema.js'
import { KINDS } from '../../protocol/models.js'
import { ROLES } from '../../service/names.js'
import { CONFIG_KEYS, SETTINGS, settingOfKey } from '../settings/table.js'

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

const DOCUMENT = {
  name: text('<provider>/<name>; the kind for its built-in schema without a model'),
  kind: text('Kind', { enum: KINDS }),
  input: { description: 'Input, as JSON Schema', type: 'object' },
}

const PRICE = {
  ...record(
    {
      run: { description: 'Price of a run', type: 'number', minimum: 0 },
      round_up: flag('Whether the price of a run is rounded up to a whole number'),
      factors: {
        description: 'Factors by parameter and value',
        type: 'object',
        additionalProperties: { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
      },
    },
    'Price; the factors of the values that are sent multiply it',
  ),
  required: ['run', 'factors'],
}

const PRICED_DOCUMENT = {
  ...DOCUMENT,
  price: orNull(PRICE),
  price_source: orNull(text('Where the price comes from', { enum: ['config', 'document', 'local', 'cost'] })),
  currency: orNull(text('Currency of the price')),
}

export const MODEL_DOCUMENT_SCHEMA: JsonSchema = {
  description: 'With the name of a model: its document.',
  type: 'object',
  required: Object.keys(PRICED_DOCUMENT),
  properties: {
    ...PRICED_DOCUMENT,
    default: flag('Whether the service names it as the default of its kind'),
  },
}

export const MODELS_SCHEMA = record(
  {
    ...Object.fromEntries(
      KINDS.map((kind) => [kind, { ...MODEL_SCHEMA, description: `Built-in input of ${kind} models` }]),
    ),
    models: list(
      record(
        {
          ...PRICED_DOCUMENT,
          default: flag('Whether `rushes run <kind>` uses it without `--model`'),
          source: text('Where the document comes from', { enum: ['added', 'service', 'local', 'built-in'] }),
        },
        'A model',
      ),
      'The models that are known',
    ),
  },
  'The inputs of the kinds, and the models.',
)

export const MODELS_CHANGE_SCHEMA = record(
  {
    model: text('<provider>/<name>'),
    result: text('Result', { enum: ['added', 'replaced', 'removed', 'saved'] }),
  },
  'One line for each model.',
)

const AMOUNT = number('Amount in the currency')

export const MODELS_IMPORT_SCHEMA = record(
  {
    model: text('<provider>/<name>'),
    kind: text('Kind', { enum: KINDS }),
    path: text('Absolute path of the document'),
    result: text('Result; the last two with --check', {
      enum: ['imported', 'replaced', 'unchanged', 'changed'],
    }),
    cost: orNull({
      description: 'What the provider charges for a run; null if that is not known',
      type: 'object',
      required: ['run', 'currency'],
      properties: {
        run: AMOUNT,
        factors: { description: 'Factors by parameter and value', type: 'object' },
        currency: text('Currency of the cost'),
      },
    }),
    changes: list(
      record(
        {
          path: text('Place in the document, for example input.steps.maximum'),
          before: { description: 'Value in the document; null if it has none' },
          after: { description: 'Value that is published now; null if there is none' },
        },
        'A change',
      ),
      'Changes since the import; empty without --check',
    ),
  },
  'One line for each document.',
)

export const MODELS_SEARCH_SCHEMA = record(
  {
    name: text('Name for `rushes models import`, with its provider'),
    kind: orNull(text('Kind; null if the provider does not publish it', { enum: KINDS })),
    runs: orNull(integer('Number of runs; null if the provider does not publish it')),
    description: text('Description by the provider; may be empty'),
    price: orNull(
      record(
        {
          amount: AMOUNT,
          unit: text('Unit that is charged, in the words of the provider, for example image or second'),
          currency: text('Currency of the amount'),
        },
        'Price; null if the provider does not publish it',
      ),
    ),
  },
  'One line for each model that was found.',
)

export const CONFIG_LIST_SCHEMA: JsonSchema = {
  description: 'The settings of the profile; never the API key.',
  type: 'object',
  properties: {
    ...Object.fromEntries(CONFIG_KEYS.map((key) => [key, text(settingOfKey(key).about)])),
    [SETTINGS.prices.key]: { description: SETTINGS.prices.about, type: 'object' },
  },
}

export const CONFIG_GET_SCHEMA: JsonSchema = {
  description: 'The value of the setting; an object for `prices`.',
  type: ['string', 'object'],
}

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

export const INIT_SCHEMA = record(
  {
    manifest: text('Path of the manifest'),
    model: orNull(text('Path of the document of a model server that answered on this machine')),
    next: text('The command that creates the files of the manifest'),
  },
  'The files that were written.',
)

export const OPEN_SCHEMA = record(
  {
    id: text('Id of the run'),
    opened: text('Absolute path, or the URL of an output that is not on this machine'),
  },
  'One line for each opened file or URL.',
)

const amount = (of: string) => orNull(number(`${of}; null without a currency`))

export const SPEND_SCHEMA = record(
  {
    group: text('What the line is about', { enum: [...SPEND_GROUPINGS, 'total'] }),
    name: orNull(
      text('Model, label, or day such as 2026-01-31; null for runs without a label, and for the total'),
    ),
    runs: integer('Number of runs'),
    without_price: integer('Number of these runs without a price, which are in no sum'),
    currency: orNull(text('Currency; null if no run of the group has a price')),
    estimate: amount('Sum of all estimates'),
    succeeded: amount('Runs that succeeded'),
    failed: amount('Runs that failed or were canceled, which may have been refunded'),
    unfinished: amount('Runs that were not finished at the last status request'),
    unconfirmed: amount('Creates with an unknown outcome'),
  },
  'One line for each group and currency, then the total.',
)

export const FORGET_SCHEMA = record(
  {
    forgotten: text('Key of the row, or id of the run'),
  },
  'One line for each removed row.',
)

/** The JSON output of `doctor`, `serve`, `models`, `config` and `forget`. */
import { KINDS } from '../../protocol/models.js'
import { ROLES } from '../../service/role.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import { bytes, integer, list, orNull, record, type Schema, text } from './shapes.js'

export const DOCTOR_SCHEMA = record('One line for each check.', {
  check: text('Name of the check'),
  status: text('Result', { enum: ['ok', 'warning', 'failed', 'skipped'] }),
  message: text('Text for people; may change'),
  advice: orNull(text('Next step; may have several lines')),
})

export const SERVE_SCHEMA: Schema = {
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
      'Names of the models.',
      Object.fromEntries(
        KINDS.map((kind) => [kind, text(`The ${kind} model, for RUSHES_${kind.toUpperCase()}_MODEL`)]),
      ),
    ),
    console: text('Link that signs in to the console once; only on the first start'),
    metrics_url: text('URL of the Prometheus metrics; only with --metrics-port'),
  },
}

const PARAMETER: Schema = {
  description: 'A parameter, as JSON Schema',
  type: 'object',
  required: ['type', 'description'],
  properties: {
    type: text('Type of its values', { enum: ['string', 'integer', 'number', 'boolean', 'array'] }),
    description: text('Meaning'),
    enum: list('Allowed values; without it, any value of the type', {
      description: 'Value',
      type: ['string', 'number'],
    }),
    minimum: { description: 'Smallest number', type: 'number' },
    maximum: { description: 'Largest number', type: 'number' },
    items: record('Entries of a list', { type: text('Type of an entry', { const: 'string' }) }),
    maxItems: { description: 'Maximum number of entries', type: 'integer', minimum: 1 },
  },
}

export const MODEL_SCHEMA = record('With a name: the input of that model, as JSON Schema.', {
  $schema: text('Version of JSON Schema'),
  type: text('Type of the input', { const: 'object' }),
  title: text('Kind', { enum: KINDS }),
  description: text('Description of the model'),
  required: list('Required parameters', text('Name of a parameter')),
  properties: {
    description: 'Parameters by name',
    type: 'object',
    additionalProperties: PARAMETER,
  },
})

export const MODELS_SCHEMA = record(
  'The inputs of the models.',
  Object.fromEntries(
    KINDS.map((kind) => [kind, { ...MODEL_SCHEMA, description: `Input of the ${kind} model` }]),
  ),
)

export const CONFIG_LIST_SCHEMA: Schema = {
  description: 'The settings of the profile; never the API key.',
  type: 'object',
  properties: Object.fromEntries(CONFIG_KEYS.map((key) => [key, text(settingOfKey(key).about)])),
}

export const CONFIG_GET_SCHEMA = text('The value of the setting.')

export const CONFIG_PATH_SCHEMA = record('Path of the config file, which may not exist yet.', {
  path: text('Absolute path'),
})

export const GALLERY_SCHEMA = record('The page that was written.', {
  path: text('Path of the page'),
  runs: integer('Number of runs on it'),
  files: integer('Number of files on it'),
  bytes: bytes('Size of the page, without the files'),
  left_out: record('Number of runs that are not on it, although they succeeded.', {
    missing: integer('Files moved, changed or deleted'),
    not_downloaded: integer('Without a downloaded file'),
  }),
})

export const FORGET_SCHEMA = record('One line for each removed row.', {
  forgotten: text('Key of the row, or id of the run'),
})

/** The JSON output of `doctor`, `serve`, `models`, `config` and `forget`. */
import { KINDS } from '../../protocol/models.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import { list, orNull, record, type Schema, text } from './shapes.js'

export const DOCTOR_SCHEMA = record('One line for each check.', {
  check: text('name of the check'),
  status: text('its result', { enum: ['ok', 'warning', 'failed', 'skipped'] }),
  message: text('for people; may change'),
  advice: orNull(text('what to do; may have several lines')),
})

export const SERVE_SCHEMA: Schema = {
  description: 'One line, printed when the service listens.',
  type: 'object',
  required: ['url', 'data', 'models'],
  properties: {
    url: text('address of the service, for RUSHES_BASE_URL'),
    data: text('folder of the runs and outputs'),
    api_key: text('for RUSHES_API_KEY; only on the first start of a data folder'),
    models: record(
      'Names of the models.',
      Object.fromEntries(
        KINDS.map((kind) => [kind, text(`the ${kind} model, for RUSHES_${kind.toUpperCase()}_MODEL`)]),
      ),
    ),
  },
}

const PARAMETER: Schema = {
  description: 'a parameter, as JSON Schema',
  type: 'object',
  required: ['type', 'description'],
  properties: {
    type: text('type of its values', { enum: ['string', 'integer', 'number', 'boolean', 'array'] }),
    description: text('its meaning'),
    enum: list('allowed values; without it, any value of the type', {
      description: 'a value',
      type: ['string', 'number'],
    }),
    minimum: { description: 'smallest number', type: 'number' },
    maximum: { description: 'largest number', type: 'number' },
    items: record('entries of a list', { type: text('type of an entry', { const: 'string' }) }),
    maxItems: { description: 'maximum number of entries', type: 'integer', minimum: 1 },
  },
}

export const MODEL_SCHEMA = record('With a name: the input of that model, as JSON Schema.', {
  $schema: text('version of JSON Schema'),
  type: text('type of the input', { const: 'object' }),
  title: text('the kind', { enum: KINDS }),
  description: text('what the model creates'),
  required: list('required parameters', text('name of a parameter')),
  properties: {
    description: 'parameters by name',
    type: 'object',
    additionalProperties: PARAMETER,
  },
})

export const MODELS_SCHEMA = record(
  'The inputs of the models.',
  Object.fromEntries(
    KINDS.map((kind) => [kind, { ...MODEL_SCHEMA, description: `input of the ${kind} model` }]),
  ),
)

export const CONFIG_LIST_SCHEMA: Schema = {
  description: 'The settings of the profile; never the API key.',
  type: 'object',
  properties: Object.fromEntries(CONFIG_KEYS.map((key) => [key, text(settingOfKey(key).about)])),
}

export const CONFIG_GET_SCHEMA = text('The value of the setting.')

export const CONFIG_PATH_SCHEMA = record('Path of the config file, which may not exist yet.', {
  path: text('absolute path'),
})

export const FORGET_SCHEMA = record('One line for each removed row.', {
  forgotten: text('key of the row, or id of the run'),
})

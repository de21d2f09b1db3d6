/** The JSON output of `doctor`, `serve`, `models`, `config` and `forget`. */
import { KINDS } from '../../protocol/models.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import { list, orNull, record, type Schema, text } from './shapes.js'

export const DOCTOR_SCHEMA = record('One line for each check.', {
  check: text('what was looked at'),
  status: text('how it is', { enum: ['ok', 'warning', 'trouble', 'skipped'] }),
  message: text('for people; it may change'),
  advice: orNull(text('what to do about it; lines')),
})

export const SERVE_SCHEMA: Schema = {
  description: 'One line, as soon as it listens.',
  type: 'object',
  required: ['url', 'data'],
  properties: {
    url: text('the address to set as RUSHES_BASE_URL'),
    data: text('the folder where runs and outputs are kept'),
    api_key: text('there on the first start of a data folder alone: only its hash is kept'),
  },
}

const PARAMETER: Schema = {
  description: 'a parameter, as JSON Schema',
  type: 'object',
  required: ['type', 'description'],
  properties: {
    type: text('of its values', { enum: ['string', 'integer', 'number', 'boolean', 'array'] }),
    description: text('what it is'),
    enum: list('what it may be; a value without it may be any of its type', {
      description: 'a value',
      type: ['string', 'number'],
    }),
    minimum: { description: 'the least that a number may be', type: 'number' },
    maximum: { description: 'the most that a number may be', type: 'number' },
    items: record('of a list', { type: text('of an entry', { const: 'string' }) }),
    maxItems: { description: 'how many entries at most', type: 'integer', minimum: 1 },
  },
}

export const MODEL_SCHEMA = record('With a name: what that model takes, as JSON Schema itself.', {
  $schema: text('the draft of JSON Schema'),
  type: text('of the input', { const: 'object' }),
  title: text('the kind', { enum: KINDS }),
  description: text('what it makes'),
  required: list('parameters that must be given', text('a name')),
  properties: {
    description: 'the parameters by name',
    type: 'object',
    additionalProperties: PARAMETER,
  },
})

export const MODELS_SCHEMA = record(
  'What the models take.',
  Object.fromEntries(
    KINDS.map((kind) => [kind, { ...MODEL_SCHEMA, description: `what the ${kind} model takes` }]),
  ),
)

export const CONFIG_LIST_SCHEMA: Schema = {
  description: 'The settings of the profile that are set; never the API key.',
  type: 'object',
  properties: Object.fromEntries(CONFIG_KEYS.map((key) => [key, text(settingOfKey(key).about)])),
}

export const CONFIG_GET_SCHEMA = text('The value of the setting.')

export const CONFIG_PATH_SCHEMA = record('Where the config file is, or would be.', { path: text('absolute') })

export const FORGET_SCHEMA = record('One line for each row that was removed.', {
  forgotten: text('the run id, or the key of a row without one'),
})

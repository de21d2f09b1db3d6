/**
 * JSON Schemas of everything that `rushes` prints or writes as JSON. docs/schemas is generated from this list, and
 * tests check real output against it. No command loads this file.
 */
import { MANIFEST_SCHEMA } from '../../batch/manifest/manifest-schema.js'
import { EXIT } from '../../errors.js'
import { bytes, integer, type JsonSchema, orNull, record, sha256, text } from '../../protocol/json-schema.js'
import { FILE_MARKS, JOURNAL_KEYS, RUN_KEYS } from '../terminal/run-json.js'
import {
  ACCOUNT_SCHEMA,
  ADMIN_RUN_SCHEMA,
  BACKUP_SCHEMA,
  CREDITS_SCHEMA,
  KEY_SCHEMA,
  MIGRATE_SCHEMA,
  MODEL_USE_SCHEMA,
  NEW_KEY_SCHEMA,
  USER_LINK_SCHEMA,
  USER_SCHEMA,
  VERIFY_SCHEMA,
} from './admin-output.js'
import {
  BATCH_PLAN_SCHEMA,
  BATCH_PLAN_SUMMARY_SCHEMA,
  BATCH_ROW_SCHEMA,
  BATCH_SUMMARY_SCHEMA,
  LOCK_SCHEMA,
} from './batch-output.js'
import {
  CONFIG_GET_SCHEMA,
  CONFIG_LIST_SCHEMA,
  CONFIG_PATH_SCHEMA,
  DOCTOR_SCHEMA,
  FORGET_SCHEMA,
  GALLERY_SCHEMA,
  INIT_SCHEMA,
  MODEL_DOCUMENT_SCHEMA,
  MODEL_SCHEMA,
  MODELS_CHANGE_SCHEMA,
  MODELS_IMPORT_SCHEMA,
  MODELS_SCHEMA,
  MODELS_SEARCH_SCHEMA,
  OPEN_SCHEMA,
  SERVE_SCHEMA,
  SPEND_SCHEMA,
} from './command-output.js'

const schemasOf = (keys: Readonly<Record<string, { readonly schema: JsonSchema }>>) =>
  Object.fromEntries(Object.entries(keys).map(([key, { schema }]) => [key, schema]))

const LIST = { ...schemasOf(RUN_KEYS), id: orNull(RUN_KEYS.id.schema), ...schemasOf(JOURNAL_KEYS) }

const RUN_SCHEMA = record(schemasOf(RUN_KEYS), 'One line for each run.')

const LIST_SCHEMA = record(LIST, 'One line for each run created on this machine, newest first.')

const SHOW_SCHEMA = record(
  {
    ...LIST,
    again: orNull(
      text('Command that repeats the run, for a POSIX shell; null if an image it used is not kept'),
    ),
  },
  'One run of the journal.',
)

const DRY_RUN_SCHEMA: JsonSchema = {
  description: 'The request body that would be sent; one line per run. With --json also its estimate.',
  type: 'object',
  required: ['model', 'input'],
  properties: {
    model: text('<provider>/<name>'),
    input: record({}, 'Input of the model'),
    estimate: JOURNAL_KEYS.estimate.schema,
    currency: JOURNAL_KEYS.currency.schema,
  },
}

const SIDECAR_SCHEMA = record(
  {
    model: orNull(text('<provider>/<name>')),
    input: {
      description: 'Input as it was sent; data: URLs as {sha256, bytes, content_type}; null if unknown',
    },
    run_id: text('Id that the service assigned to the run'),
    service: text('URL of the service; local for --local'),
    url: text('The URL that the file was downloaded from'),
    sha256: sha256('of the content of the file'),
    bytes: bytes('Size of the file'),
    content_type: text('Content type detected from the first bytes, for example image/png'),
    width: orNull(integer('Width of a picture in pixels; null for a video')),
    height: orNull(integer('Height of a picture in pixels; null for a video')),
    ...FILE_MARKS,
    created_at: RUN_KEYS.created_at.schema,
    finished_at: RUN_KEYS.finished_at.schema,
    elapsed_ms: RUN_KEYS.elapsed_ms.schema,
  },
  'The file beside each output with --sidecar: what it was created from.',
)

const ERROR_SCHEMA = record(
  {
    error: record(
      {
        code: text('Stable code: from the service if it sent one, else from the list in docs/exit-codes.md'),
        message: text('Text for people; may change'),
        hint: orNull(text('Next step, on one line')),
        http_status: orNull(integer('HTTP status of the response that caused the error')),
        exit_code: {
          description: 'Exit code of the command if this is its only error',
          enum: Object.values(EXIT).filter((code) => code !== EXIT.ok),
        },
        run_id: orNull(text('Run that the error is about, if one exists')),
      },
      'Error',
    ),
  },
  'One line for each error.',
)

const WARNING_SCHEMA = record(
  {
    warning: record({ message: text('Text for people; may change') }, 'Warning'),
  },
  'One line for each warning. The command continues.',
)

const DEBUG_SCHEMA = record(
  {
    debug: text('Text for people; may change and may have several lines'),
  },
  'With --debug: one line for each request and response, and the stack trace of an error.',
)

export interface Published {
  /** Name of the file in docs/schemas, without its extension. */
  readonly name: string
  /** Command or file whose output has this schema. */
  readonly of: string
  readonly schema: JsonSchema
}

export const PUBLISHED = [
  { name: 'run', of: '`run`, `wait`, `download`, `cancel`, `status` with `--json`', schema: RUN_SCHEMA },
  { name: 'list', of: '`list --json`', schema: LIST_SCHEMA },
  { name: 'show', of: '`show --json`', schema: SHOW_SCHEMA },
  { name: 'open', of: '`open --json`', schema: OPEN_SCHEMA },
  { name: 'spend', of: '`spend --json`', schema: SPEND_SCHEMA },
  { name: 'init', of: '`init --json`', schema: INIT_SCHEMA },
  { name: 'gallery', of: '`gallery --json`', schema: GALLERY_SCHEMA },
  { name: 'dry-run', of: '`run --dry-run`', schema: DRY_RUN_SCHEMA },
  { name: 'error', of: 'standard error under `--json`', schema: ERROR_SCHEMA },
  { name: 'warning', of: 'standard error under `--json`', schema: WARNING_SCHEMA },
  { name: 'debug', of: 'standard error under `--json --debug`', schema: DEBUG_SCHEMA },
  { name: 'batch-row', of: '`batch --json`', schema: BATCH_ROW_SCHEMA },
  { name: 'batch-summary', of: '`batch --json`, last line', schema: BATCH_SUMMARY_SCHEMA },
  { name: 'batch-plan', of: '`batch --check --json`, `batch --dry-run --json`', schema: BATCH_PLAN_SCHEMA },
  {
    name: 'batch-plan-summary',
    of: '`batch --check --json`, `batch --dry-run --json`, last line',
    schema: BATCH_PLAN_SUMMARY_SCHEMA,
  },
  { name: 'manifest', of: 'the manifest of `batch`', schema: MANIFEST_SCHEMA },
  { name: 'lock', of: 'the lock file of `batch`', schema: LOCK_SCHEMA },
  { name: 'sidecar', of: 'the file that `--sidecar` writes', schema: SIDECAR_SCHEMA },
  { name: 'models', of: '`models --json`', schema: MODELS_SCHEMA },
  { name: 'model', of: '`models image|video --json`', schema: MODEL_SCHEMA },
  { name: 'model-document', of: '`models <provider/name> --json`', schema: MODEL_DOCUMENT_SCHEMA },
  { name: 'models-change', of: '`models add|remove|save --json`', schema: MODELS_CHANGE_SCHEMA },
  { name: 'models-import', of: '`models import --json`', schema: MODELS_IMPORT_SCHEMA },
  { name: 'models-search', of: '`models search --json`', schema: MODELS_SEARCH_SCHEMA },
  { name: 'doctor', of: '`doctor --json`', schema: DOCTOR_SCHEMA },
  { name: 'serve', of: '`serve --json`', schema: SERVE_SCHEMA },
  { name: 'admin-account', of: '`admin account --json`, `admin credits add --json`', schema: ACCOUNT_SCHEMA },
  { name: 'admin-key', of: '`admin key list|disable|enable|set --json`', schema: KEY_SCHEMA },
  { name: 'admin-new-key', of: '`admin key create --json`', schema: NEW_KEY_SCHEMA },
  { name: 'admin-user', of: '`admin user list|remove --json`', schema: USER_SCHEMA },
  { name: 'admin-user-link', of: '`admin user add|link --json`', schema: USER_LINK_SCHEMA },
  { name: 'admin-models', of: '`admin models list --json`', schema: MODEL_USE_SCHEMA },
  { name: 'admin-run', of: '`admin run cancel --json`', schema: ADMIN_RUN_SCHEMA },
  { name: 'admin-credits', of: '`admin credits list --json`', schema: CREDITS_SCHEMA },
  { name: 'admin-backup', of: '`admin backup --json`', schema: BACKUP_SCHEMA },
  { name: 'admin-migrate', of: '`admin migrate --json`', schema: MIGRATE_SCHEMA },
  { name: 'admin-verify', of: '`admin verify --json`', schema: VERIFY_SCHEMA },
  { name: 'config-list', of: '`config list --json`', schema: CONFIG_LIST_SCHEMA },
  { name: 'config-get', of: '`config get --json`', schema: CONFIG_GET_SCHEMA },
  { name: 'config-path', of: '`config path --json`', schema: CONFIG_PATH_SCHEMA },
  { name: 'forget', of: '`forget --json`', schema: FORGET_SCHEMA },
] as const satisfies readonly Published[]

export type PublishedName = (typeof PUBLISHED)[number]['name']

/** Formats a schema as the text of a file in docs/schemas. */
export function schemaText({ schema, of }: Published): string {
  const titled = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `rushes: ${of.replace(/`/g, '')}`,
    ...schema,
  }
  return `${JSON.stringify(titled, null, 2)}\n`
}

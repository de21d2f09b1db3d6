/**
 * JSON Schemas of everything that `rushes` prints or writes as JSON. docs/schemas is generated from this list, and the
 * tests check real output against it. No command loads it.
 */
import { MANIFEST_SCHEMA } from '../../batch/manifest/manifest-schema.js'
import {
  ACCOUNT_SCHEMA,
  BACKUP_SCHEMA,
  CREDITS_SCHEMA,
  KEY_SCHEMA,
  MIGRATE_SCHEMA,
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
import { DRY_RUN_SCHEMA, LIST_SCHEMA, RUN_SCHEMA, SHOW_SCHEMA, SIDECAR_SCHEMA } from './run-output.js'
import {
  CONFIG_GET_SCHEMA,
  CONFIG_LIST_SCHEMA,
  CONFIG_PATH_SCHEMA,
  DOCTOR_SCHEMA,
  FORGET_SCHEMA,
  GALLERY_SCHEMA,
  MODEL_SCHEMA,
  MODELS_SCHEMA,
  SERVE_SCHEMA,
} from './setup-output.js'
import type { Schema } from './shapes.js'
import { DEBUG_SCHEMA, ERROR_SCHEMA, WARNING_SCHEMA } from './stderr-output.js'

export interface Published {
  /** Name of the file in docs/schemas, without its extension. */
  readonly name: string
  /** The command or file that has this shape. */
  readonly of: string
  readonly schema: Schema
}

export const PUBLISHED = [
  { name: 'run', of: '`run`, `wait`, `download`, `status` with `--json`', schema: RUN_SCHEMA },
  { name: 'list', of: '`list --json`', schema: LIST_SCHEMA },
  { name: 'show', of: '`show --json`', schema: SHOW_SCHEMA },
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
  { name: 'model', of: '`models <name> --json`', schema: MODEL_SCHEMA },
  { name: 'doctor', of: '`doctor --json`', schema: DOCTOR_SCHEMA },
  { name: 'serve', of: '`serve --json`', schema: SERVE_SCHEMA },
  { name: 'admin-account', of: '`admin account --json`, `admin credits add --json`', schema: ACCOUNT_SCHEMA },
  { name: 'admin-key', of: '`admin key list|disable|enable|set --json`', schema: KEY_SCHEMA },
  { name: 'admin-new-key', of: '`admin key create|rotate --json`', schema: NEW_KEY_SCHEMA },
  { name: 'admin-user', of: '`admin user list|remove --json`', schema: USER_SCHEMA },
  { name: 'admin-user-link', of: '`admin user add|link --json`', schema: USER_LINK_SCHEMA },
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

/** The text of a file in docs/schemas. */
export function schemaText({ schema, of }: Published): string {
  const titled = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `rushes: ${of.replace(/`/g, '')}`,
    ...schema,
  }
  return `${JSON.stringify(titled, null, 2)}\n`
}

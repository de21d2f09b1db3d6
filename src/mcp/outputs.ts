/**
 * The schemas of `structuredContent`. They are part of the list of tools, so they are short. Unknown values are null; a call
 * that fails before there is a run has only `error`. Pure.
 */
import type { JsonSchema, ObjectSchema } from './tool.js'

const TEXT: JsonSchema = { type: 'string' }
const TEXT_OR_NULL: JsonSchema = { type: ['string', 'null'] }
const INTEGER: JsonSchema = { type: 'integer' }
const ANY_OBJECT: JsonSchema = { type: 'object' }

const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
const object = (properties: Readonly<Record<string, JsonSchema>>): ObjectSchema => ({
  type: 'object',
  properties,
})

/** `error` has the shape of an error under `--json`. */
const COMMON = { error: ANY_OBJECT, warnings: list(TEXT) } as const

const RUN = object({
  id: TEXT_OR_NULL,
  state: { enum: ['running', 'succeeded', 'failed', 'unknown'] },
  status: TEXT_OR_NULL,
  kind: TEXT_OR_NULL,
  model: TEXT_OR_NULL,
  urls: list(TEXT),
  files: list(object({ path: TEXT, bytes: INTEGER, content_type: TEXT, sha256: TEXT })),
  request_id: TEXT_OR_NULL,
  error: { type: ['object', 'null'] },
})

export const RUN_OUTPUT = object({ runs: list(RUN), ...COMMON })

export const MODELS_OUTPUT = object({ models: ANY_OBJECT, configured: ANY_OBJECT, ...COMMON })

export const LIST_OUTPUT = object({
  runs: list(
    object({
      id: TEXT_OR_NULL,
      key: TEXT_OR_NULL,
      request_id: TEXT_OR_NULL,
      status: TEXT,
      kind: TEXT_OR_NULL,
      model: TEXT,
      created_at: TEXT_OR_NULL,
      prompt: TEXT,
      files: list(TEXT),
      address: TEXT,
    }),
  ),
  ...COMMON,
})

export const SHOW_OUTPUT = object({ run: ANY_OBJECT, ...COMMON })

const ROWS = { rows: list(ANY_OBJECT), rows_left_out: INTEGER } as const

export const PLAN_OUTPUT = object({
  create: INTEGER,
  left_in_session: INTEGER,
  summary: ANY_OBJECT,
  ...ROWS,
  ...COMMON,
})

export const BATCH_OUTPUT = object({
  is_running: { type: 'boolean' },
  summary: { type: ['object', 'null'] },
  ...ROWS,
  ...COMMON,
})

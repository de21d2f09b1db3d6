/** The JSON output of `rushes batch`, and its lock file. */
import { KINDS } from '../../protocol/models.js'
import { SHORT_ERROR } from './run-output.js'
import { bytes, integer, milliseconds, orNull, record, type Schema, sha256, text, time } from './shapes.js'

const NAME = text('the name of the run in the manifest')
const KIND = text('null where the row has an input of its own', { enum: KINDS })
const MODEL = text('<provider>/<name>')
const HASH = sha256('of model and input')
const LINE = integer('the line of the row in the manifest, counted from 1')

export const BATCH_PLAN_SCHEMA = record('With --check or --dry-run: one line for each row of the manifest.', {
  name: NAME,
  action: text('what would be done', {
    enum: ['up_to_date', 'create', 'download', 'unconfirmed', 'conflict', 'skip'],
  }),
  reason: orNull(text('why; for unconfirmed the key of the row in the journal')),
  kind: orNull(KIND),
  model: orNull(MODEL),
  hash: orNull(HASH),
  file: text('relative to the folder of the manifest'),
  run: orNull(text('the run whose output would be downloaded')),
  line: LINE,
})

export const BATCH_PLAN_SUMMARY_SCHEMA = record('With --check or --dry-run: the last line.', {
  summary: record('how many rows', {
    total: integer('all of them'),
    up_to_date: integer('whose file exists and matches the manifest'),
    create: integer('to be created and paid for'),
    download: integer('to be downloaded, already paid for'),
    unconfirmed: integer('whose last create has an unknown outcome'),
    conflict: integer('where another file is in the way'),
    skip: integer('not selected by --only'),
    requests: integer('the smallest number of requests that it needs'),
    least_ms: orNull(milliseconds('with --dry-run: the shortest time that the rate limit allows')),
    expected_ms: orNull(
      milliseconds('with --dry-run: the expected time; null where the duration of a model is not known'),
    ),
  }),
})

export const BATCH_ROW_SCHEMA = record('One line for each row, as soon as it has ended.', {
  name: NAME,
  result: text('what happened to it', { enum: ['created', 'downloaded', 'failed', 'unconfirmed'] }),
  kind: orNull(KIND),
  model: orNull(MODEL),
  run: orNull(text('the identifier that the service gave it')),
  file: orNull(text('relative to the folder of the manifest; null where it does not exist')),
  bytes: orNull(bytes('the size of the file')),
  sha256: orNull(sha256('of the file')),
  content_type: orNull(text('detected from its first bytes, for example image/png')),
  error: orNull(SHORT_ERROR),
  line: LINE,
})

export const BATCH_SUMMARY_SCHEMA = record('The last line.', {
  summary: record('how many rows', {
    total: integer('all of them'),
    up_to_date: integer('whose file existed and matched the manifest'),
    created: integer('created and paid for'),
    downloaded: integer('downloaded, already paid for'),
    failed: integer('failed'),
    unconfirmed: integer('whose create has an unknown outcome'),
    still_running: integer('created, and not finished when the batch ended'),
    not_started: integer('not created, because the batch ended before'),
    skipped: integer('not selected by --only'),
    elapsed_ms: milliseconds('how long it took'),
  }),
})

/** Properties are optional: an entry holds what is known by then, and perhaps fields of a later version. */
const fields = (
  description: string,
  required: readonly string[],
  properties: Readonly<Record<string, Schema>>,
) => ({
  description,
  type: 'object',
  required,
  properties,
})

const PENDING = fields('a create without a file so far', ['hash', 'model', 'sent_at', 'state'], {
  hash: HASH,
  kind: KIND,
  model: MODEL,
  run: text('the identifier that the service gave it, if it was accepted'),
  service: text('the address it was sent to'),
  state: text('accepted: the run exists; unconfirmed: the outcome is unknown', {
    enum: ['accepted', 'unconfirmed'],
  }),
  key: text('of the row in the journal of the machine that sent it, for example ~3f2a'),
  sent_at: time('when it was sent'),
  placing: record('the file that is about to be renamed', {
    sha256: sha256('of the file'),
    bytes: bytes('its size'),
  }),
})

export const LOCK_SCHEMA = fields(
  'The lock file beside a manifest (shots.lock.json beside shots.yaml): which file was created from which model and input.',
  ['version', 'runs'],
  {
    version: { description: 'of this format', const: 1 },
    manifest: text('the file name of the manifest'),
    runs: {
      description: 'by their names in the manifest',
      type: 'object',
      additionalProperties: fields('the file that exists, and a later create', [], {
        hash: HASH,
        kind: KIND,
        model: MODEL,
        run: text('the identifier that the service gave it'),
        service: text('the address at which it was created'),
        url: text('where the file came from, without query and credentials'),
        file: text('relative to the folder of the manifest'),
        sha256: sha256('of the file'),
        bytes: bytes('the size of the file'),
        content_type: text('detected from its first bytes, for example image/png'),
        made_at: time('when it was downloaded'),
        pending: PENDING,
      }),
    },
  },
)

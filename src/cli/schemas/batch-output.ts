/** The JSON output of `rushes batch`, and its lock file. */
import { KINDS } from '../../protocol/models.js'
import { SHORT_ERROR } from './run-output.js'
import { bytes, integer, milliseconds, orNull, record, type Schema, sha256, text, time } from './shapes.js'

const NAME = text('the name of the run in the manifest')
const KIND = text('null where the row has an input of its own', { enum: KINDS })
const MODEL = text('<provider>/<name>')
const HASH = sha256('of model and input')
const LINE = integer('where the row stands in the manifest, counted from 1')

export const BATCH_PLAN_SCHEMA = record('With --check or --dry-run: one line for each row of the manifest.', {
  name: NAME,
  action: text('what would be done', { enum: ['current', 'make', 'fetch', 'unconfirmed', 'refuse', 'skip'] }),
  reason: orNull(text('why; for unconfirmed the key of the row in the journal')),
  kind: orNull(KIND),
  model: orNull(MODEL),
  hash: orNull(HASH),
  file: text('relative to the folder of the manifest'),
  run: orNull(text('the run that would be fetched again')),
  line: LINE,
})

export const BATCH_PLAN_SUMMARY_SCHEMA = record('With --check or --dry-run: the last line.', {
  summary: record('how many rows', {
    total: integer('all of them'),
    current: integer('there, and as the manifest wants them'),
    make: integer('to be made and paid for'),
    fetch: integer('paid for already, to be fetched'),
    unconfirmed: integer('whose last create may have made a run'),
    refuse: integer('where another file is in the way'),
    skip: integer('left out by --only'),
    requests: integer('the least that the service would be asked'),
    least_ms: orNull(milliseconds('with --dry-run: what the limit alone takes')),
    expected_ms: orNull(
      milliseconds('with --dry-run: how long it will take; null where nobody knows how long a model takes'),
    ),
  }),
})

export const BATCH_ROW_SCHEMA = record('One line for each row, as soon as it has ended.', {
  name: NAME,
  result: text('what became of it', { enum: ['made', 'fetched', 'failed', 'unconfirmed'] }),
  kind: orNull(KIND),
  model: orNull(MODEL),
  run: orNull(text('the identifier that the service gave it')),
  file: orNull(text('relative to the folder of the manifest; null where there is none')),
  bytes: orNull(bytes('the size of the file')),
  sha256: orNull(sha256('what is in the file')),
  content_type: orNull(text('what its first bytes say that it is, as in image/png')),
  error: orNull(SHORT_ERROR),
  line: LINE,
})

export const BATCH_SUMMARY_SCHEMA = record('The last line.', {
  summary: record('how many rows', {
    total: integer('all of them'),
    current: integer('there before, and as the manifest wants them'),
    made: integer('made and paid for'),
    fetched: integer('fetched, without paying'),
    failed: integer('failed'),
    unconfirmed: integer('whose create may have made a run'),
    unfinished: integer('created and not waited for: the batch ended before, the runs go on'),
    unbegun: integer('not begun: the batch ended before'),
    skipped: integer('left out by --only'),
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

const PENDING = fields('a create that has brought no file yet', ['hash', 'model', 'sent_at', 'state'], {
  hash: HASH,
  kind: KIND,
  model: MODEL,
  run: text('the identifier that the service gave it; there when it was accepted'),
  service: text('the address it was sent to'),
  state: text('accepted: the run exists; unconfirmed: nobody knows', { enum: ['accepted', 'unconfirmed'] }),
  key: text('of the row in the journal of the machine that sent it, as in ~3f2a'),
  sent_at: time('when it was sent'),
  placing: record('the file that is about to get its name', {
    sha256: sha256('what is in it'),
    bytes: bytes('its size'),
  }),
})

export const LOCK_SCHEMA = fields(
  'The lock file beside a manifest (shots.lock.json beside shots.yaml): what was made from what.',
  ['version', 'runs'],
  {
    version: { description: 'of this format', const: 1 },
    manifest: text('the file name of the manifest'),
    runs: {
      description: 'by the names of the manifest',
      type: 'object',
      additionalProperties: fields('the file that is there, and a create that came after it', [], {
        hash: HASH,
        kind: KIND,
        model: MODEL,
        run: text('the identifier that the service gave it'),
        service: text('the address at which it was created'),
        url: text('where the file came from, without query and credentials'),
        file: text('relative to the folder of the manifest'),
        sha256: sha256('what is in the file'),
        bytes: bytes('the size of the file'),
        content_type: text('what its first bytes say that it is, as in image/png'),
        made_at: time('when it was made'),
        pending: PENDING,
      }),
    },
  },
)

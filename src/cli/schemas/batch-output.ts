/** Schemas of the JSON output of `rushes batch`, and of its lock file. */
import {
  bytes,
  integer,
  type JsonSchema,
  milliseconds,
  number,
  orNull,
  record,
  sha256,
  text,
  time,
} from '../../protocol/json-schema.js'
import { KINDS } from '../../protocol/models.js'
import { FILE_MARKS, SHORT_ERROR } from '../terminal/run-json.js'

const NAME = text('Name of the run in the manifest')
const KIND = text('Kind; null for a model that is neither', { enum: KINDS })
const MODEL = text('<provider>/<name>')
const HASH = sha256('of model and input')
const LINE = integer('Line of the row in the manifest, counted from 1')

export const BATCH_PLAN_SCHEMA = record(
  {
    name: NAME,
    action: text('What the batch would do', {
      enum: ['up_to_date', 'create', 'download', 'unconfirmed', 'conflict', 'blocked'],
    }),
    reason: orNull(
      text(
        'Reason, such as missing, "prompt changed" or "row:hero changed"; for unconfirmed, the key of the row in the journal',
      ),
    ),
    kind: orNull(KIND),
    model: orNull(MODEL),
    hash: orNull(
      sha256('of model and input; null if the model, or an output that the row uses, is not known yet'),
    ),
    file: text('Path relative to the folder of the manifest'),
    run: orNull(text('Run whose output would be downloaded')),
    uses: { description: 'Names of the rows whose outputs it uses', type: 'array', items: NAME },
    outputs: {
      description: 'The outputs that the lock file knows, the first one first',
      type: 'array',
      items: record(
        {
          file: text('Path relative to the folder of the manifest'),
          sha256: sha256('of the output'),
          bytes: bytes('Length'),
          state: text('What exists at the path: this output, nothing, or something else', {
            enum: ['in_place', 'missing', 'different'],
          }),
        },
        'Output',
      ),
    },
    line: LINE,
  },
  'With --check or --dry-run: one line for each row that is selected.',
)

const NOT_WAITED_FOR = {
  description: 'Runs in the lock file that may be paid for, and that no row waits for',
  type: 'array',
  items: record(
    {
      name: NAME,
      run: orNull(text('Run id; null if the outcome of the create is unknown')),
      key: orNull(text('For an unknown outcome: key of the row in the journal, for example ~3f2a')),
      why: text(
        'Why: the row has changed, it waits for rows that are created again, --force, or it was removed from the manifest',
        { enum: ['changed', 'waiting', 'forced', 'removed'] },
      ),
    },
    'Run',
  ),
}

const ESTIMATE = (runs: string) => ({
  estimate: orNull(
    number(`Estimate of the runs that ${runs}; without those that have no price; null if none has one`),
  ),
  currency: text('Currency of the estimates'),
  without_price: integer('Number of these runs without a price'),
  estimates: {
    description: 'The estimate by model; null without a price',
    type: 'object',
    additionalProperties: orNull(number('Estimate')),
  },
})

export const BATCH_PLAN_SUMMARY_SCHEMA = record(
  {
    summary: record(
      {
        total: integer('All rows'),
        up_to_date: integer('Rows whose file exists and matches the manifest'),
        create: integer('Rows that would be created and paid for'),
        download: integer('Rows that would be downloaded; already paid for'),
        unconfirmed: integer('Rows whose last create has an unknown outcome'),
        conflict: integer('Rows whose output is another file'),
        blocked: integer('Rows that use the output of a row that will not be created'),
        skip: integer('Rows that --only does not select'),
        requests: integer('Minimum number of requests'),
        least_ms: orNull(milliseconds('With --dry-run: minimum time that the rate limit allows')),
        expected_ms: orNull(
          milliseconds('With --dry-run: expected time; null if the typical duration of a model is unknown'),
        ),
        models: {
          description: 'Number of runs that would be created, by model',
          type: 'object',
          additionalProperties: integer('Number of runs'),
        },
        ...ESTIMATE('would be created'),
        not_waited_for: NOT_WAITED_FOR,
      },
      'Number of rows',
    ),
  },
  'With --check or --dry-run: the last line.',
)

export const BATCH_ROW_SCHEMA = record(
  {
    name: NAME,
    result: text('Result', { enum: ['created', 'downloaded', 'failed', 'blocked', 'unconfirmed'] }),
    kind: orNull(KIND),
    model: orNull(MODEL),
    run: orNull(text('Run id')),
    file: orNull(text('Path relative to the folder of the manifest; null if it does not exist')),
    bytes: orNull(bytes('Size of the file')),
    sha256: orNull(sha256('of the file')),
    content_type: orNull(text('Content type detected from the first bytes, for example image/png')),
    ...FILE_MARKS,
    error: orNull(SHORT_ERROR),
    blocked_by: orNull(text('For blocked: name of the row whose output is missing')),
    line: LINE,
  },
  'One line for each row, as soon as it has ended.',
)

export const BATCH_SUMMARY_SCHEMA = record(
  {
    summary: record(
      {
        total: integer('All rows'),
        up_to_date: integer('Rows whose file existed and matched the manifest'),
        created: integer('Rows created and paid for'),
        downloaded: integer('Rows downloaded; already paid for'),
        failed: integer('Rows that failed'),
        blocked: integer('Rows not created, because a row whose output they use failed'),
        unconfirmed: integer('Rows whose create has an unknown outcome'),
        still_running: integer('Rows created and not finished when the batch ended'),
        not_started: integer('Rows not created, because the batch ended first'),
        skipped: integer('Rows that --only does not select'),
        elapsed_ms: milliseconds('Elapsed time'),
        ...ESTIMATE('were created, also if they failed or their outcome is unknown'),
        not_waited_for: NOT_WAITED_FOR,
      },
      'Number of rows',
    ),
  },
  'The last line.',
)

/**
 * Schema of an object in the lock file. Most properties are optional, because fields are added while a run progresses;
 * a later version may add other fields.
 */
const fields = (
  description: string,
  required: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
) => ({
  description,
  type: 'object',
  required,
  properties,
})

const INPUTS = {
  description: 'A short hash of each input; row:hero is the output of the row hero',
  type: 'object',
  additionalProperties: text('The first digits of a SHA-256'),
}

const OUTPUT = fields('Output of a run after its first one', ['run', 'file', 'sha256'], {
  run: text('Run id'),
  url: text('URL of the output, without query and credentials'),
  file: text('Path relative to the folder of the manifest'),
  sha256: sha256('of the file'),
  bytes: bytes('Size of the file'),
  content_type: text('Content type detected from the first bytes, for example image/png'),
})

const PENDING = fields('A create whose file does not exist yet', ['hash', 'model', 'sent_at', 'state'], {
  hash: HASH,
  kind: KIND,
  model: MODEL,
  run: text('Run id, if the service accepted the create'),
  service: text('URL of the service that it was sent to'),
  state: text('State: accepted (the run exists) or unconfirmed (the outcome is unknown)', {
    enum: ['accepted', 'unconfirmed'],
  }),
  key: text('Key of the row in the journal of the machine that sent it, for example ~3f2a'),
  token: text('Token of this create, by which the journal knows it too'),
  sent_at: time('Time of the create'),
  inputs: INPUTS,
  placing: {
    description: 'Downloaded files that are about to get their names',
    type: 'array',
    items: record(
      {
        run: text('Run id'),
        output: integer('Number of the output in its run, counted from 1'),
        sha256: sha256('of the file'),
        bytes: bytes('Size of the file'),
        content_type: text('Content type detected from the first bytes, for example image/png'),
      },
      'File',
    ),
  },
})

export const LOCK_SCHEMA = fields(
  'The lock file beside a manifest (shots.lock.json beside shots.yaml): which file was created from which model and input.',
  ['version', 'runs'],
  {
    version: { description: 'Version of this format', const: 1 },
    manifest: text('File name of the manifest'),
    runs: {
      description: 'Entries by their names in the manifest',
      type: 'object',
      additionalProperties: fields('File that exists, and a later create', [], {
        order: integer(
          'Number of the row among rows of the same input, in the order of the manifest; absent for 1',
        ),
        variant: integer('Number of the run in a row with count; absent for 1'),
        hash: HASH,
        kind: KIND,
        model: MODEL,
        run: text('Run id'),
        service: text('URL of the service that created it; local for --local'),
        url: text('URL of the output, without query and credentials'),
        file: text('Path relative to the folder of the manifest'),
        sha256: sha256('of the file'),
        bytes: bytes('Size of the file'),
        content_type: text('Content type detected from the first bytes, for example image/png'),
        made_at: time('Time of the download'),
        inputs: INPUTS,
        outputs: { description: 'The second output and those after it', type: 'array', items: OUTPUT },
        pending: PENDING,
      }),
    },
  },
)

/** The JSON of a run as commands print it, and what `rushes list` and `--sidecar` add. */
import { KINDS } from '../../protocol/models.js'
import { any, bytes, integer, list, milliseconds, orNull, record, sha256, text, time } from './shapes.js'

export const FILE = record('a file that was downloaded, whole and under its final name', {
  path: text('where it is'),
  bytes: bytes('its size'),
  sha256: sha256('what is in it'),
  url: text('the link of the run that worked'),
  content_type: text('what its first bytes say that it is, as in image/png'),
})

export const SHORT_ERROR = record('why', {
  code: text('of the service where it sent one, else one of the list of docs/exit-codes.md'),
  message: text('for people; it may change'),
})

const RUN = {
  id: text('the identifier that the service gave it'),
  kind: orNull(text('what it makes; null where the command does not know it', { enum: KINDS })),
  model: orNull(text('<provider>/<name>')),
  status: orNull(
    text(
      "the service's own word; accepted, sending and unconfirmed are words of rushes for a run that nobody has looked at",
    ),
  ),
  output: orNull(
    record('null until it has succeeded', {
      urls: list('its outputs', text('an http or https link; it may expire')),
    }),
  ),
  files: list('in the order of the outputs', FILE),
  error: orNull({ ...SHORT_ERROR, description: 'when the run failed, or the command failed for it' }),
  created_at: orNull(time('when it was created, by the service where it says so')),
  finished_at: orNull(time('when it had its final status, by the service where it says so')),
  elapsed_ms: orNull(
    milliseconds(
      'from the sending of the create to the first sight of a final status, as far as one process saw both',
    ),
  ),
  service: any("the service's own object, untouched; null where it was not asked"),
} as const

export const RUN_SCHEMA = record('One line for each run.', RUN)

export const LIST_SCHEMA = record('One line for each run that this machine knows, the newest first.', {
  ...RUN,
  id: orNull(RUN.id),
  key: orNull(text('what a row without an id is called, as in ~3f2a')),
  address: text('of the service; local for the one of --local'),
  profile: text('of the config file'),
  input: any('as it was sent; data: URLs as {sha256, bytes, content_type}'),
  answer: orNull(
    record('what came back, where that does not say what became of the run', {
      status: orNull(integer('the HTTP status')),
      text: orNull(text('the body')),
    }),
  ),
})

export const DRY_RUN_SCHEMA = record('The body of a create that would be sent; one line for each.', {
  model: text('<provider>/<name>'),
  input: record('as the model takes it', {}),
})

export const SIDECAR_SCHEMA = record(
  'Beside each file that --sidecar was given for: what it was made from.',
  {
    model: orNull(text('<provider>/<name>')),
    input: any('as it was sent; data: URLs as {sha256, bytes, content_type}; null where nobody knows'),
    run_id: text('the identifier that the service gave the run'),
    service: text('the address of the service; local for the one of --local'),
    url: text('the link that the file was fetched from'),
    sha256: sha256('what is in the file'),
    bytes: bytes('the size of the file'),
    content_type: text('what its first bytes say that it is, as in image/png'),
    created_at: RUN.created_at,
    finished_at: RUN.finished_at,
    elapsed_ms: RUN.elapsed_ms,
  },
)

/** The JSON of a run as commands print it, and what `rushes list` and `--sidecar` add. */
import { KINDS } from '../../protocol/models.js'
import { any, bytes, integer, list, milliseconds, orNull, record, sha256, text, time } from './shapes.js'

export const FILE = record('a file with an output, complete', {
  path: text('its path'),
  bytes: bytes('its size'),
  sha256: sha256('of its content'),
  url: text('the output URL that it was downloaded from'),
  content_type: text('by its first bytes, for example image/png'),
})

export const SHORT_ERROR = record('the reason', {
  code: text('from the service if it sent one, else from the list in docs/exit-codes.md'),
  message: text('for people; may change'),
})

const RUN = {
  id: text('the id that the service assigned'),
  kind: orNull(text('the kind of output; null if unknown', { enum: KINDS })),
  model: orNull(text('<provider>/<name>')),
  status: orNull(
    text(
      "the service's own word; accepted, sending and unconfirmed are set by rushes before the first status request",
    ),
  ),
  output: orNull(
    record('null until the run has succeeded', {
      urls: list(
        'its outputs',
        text('an http or https URL; it may expire; under --local it ends with the process'),
      ),
    }),
  ),
  files: list('in the order of the outputs', FILE),
  error: orNull({ ...SHORT_ERROR, description: 'if the run failed, or the command failed for this run' }),
  created_at: orNull(time('when it was created; from the service if it says so')),
  finished_at: orNull(time('when it reached its final status; from the service if it says so')),
  elapsed_ms: orNull(milliseconds('from sending the create to the first final status that rushes saw')),
  service: any("the service's own object, unchanged; null if the service was not asked"),
} as const

export const RUN_SCHEMA = record('One line for each run.', RUN)

const LIST = {
  ...RUN,
  id: orNull(RUN.id),
  key: orNull(text('the name of a row without an id, for example ~3f2a')),
  address: text('of the service; local for --local'),
  profile: text('the profile of the config file'),
  input: any('as it was sent; data: URLs as {sha256, bytes, content_type}'),
  answer: orNull(
    record('the response to the create, if it did not tell the outcome', {
      status: orNull(integer('the HTTP status')),
      text: orNull(text('the body')),
    }),
  ),
} as const

export const LIST_SCHEMA = record('One line for each run created on this machine, newest first.', LIST)

export const SHOW_SCHEMA = record('One run of the journal.', {
  ...LIST,
  again: orNull(
    text('the command that repeats the run, for a POSIX shell; null if an image it used is not kept'),
  ),
})

export const DRY_RUN_SCHEMA = record('The request body that would be sent; one line per run.', {
  model: text('<provider>/<name>'),
  input: record('the input of the model', {}),
})

export const SIDECAR_SCHEMA = record(
  'The file beside each output with --sidecar: what it was created from.',
  {
    model: orNull(text('<provider>/<name>')),
    input: any('as it was sent; data: URLs as {sha256, bytes, content_type}; null if unknown'),
    run_id: text('the id that the service assigned to the run'),
    service: text('the address of the service; local for --local'),
    url: text('the URL that the file was downloaded from'),
    sha256: sha256('of the content of the file'),
    bytes: bytes('the size of the file'),
    content_type: text('by its first bytes, for example image/png'),
    created_at: RUN.created_at,
    finished_at: RUN.finished_at,
    elapsed_ms: RUN.elapsed_ms,
  },
)

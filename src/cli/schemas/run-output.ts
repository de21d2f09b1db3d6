/** The JSON of a run as commands print it, and what `rushes list` and `--sidecar` add. */
import { KINDS } from '../../protocol/models.js'
import { any, bytes, integer, list, milliseconds, orNull, record, sha256, text, time } from './shapes.js'

export const FILE = record('A downloaded output', {
  path: text('Path'),
  bytes: bytes('Size'),
  sha256: sha256('of its content'),
  url: text('Output URL that it was downloaded from'),
  content_type: text('Content type detected from the first bytes, for example image/png'),
})

export const SHORT_ERROR = record('Reason', {
  code: text('Code of the service if it sent one, else from the list in docs/exit-codes.md'),
  message: text('Text for people; may change'),
})

const RUN = {
  id: text('Id that the service assigned'),
  kind: orNull(text('Kind of output; null if unknown', { enum: KINDS })),
  model: orNull(text('<provider>/<name>')),
  status: orNull(
    text(
      "The service's own word; accepted, sending and unconfirmed are set by rushes before the first status request",
    ),
  ),
  output: orNull(
    record('Null until the run has succeeded', {
      urls: list(
        'Outputs',
        text('An http or https URL; it may expire; under --local it ends with the process'),
      ),
    }),
  ),
  files: list('Downloaded files, in the order of the outputs', FILE),
  error: orNull({
    ...SHORT_ERROR,
    description: 'Reason why the run failed, or why the command failed for this run',
  }),
  created_at: orNull(time('Creation time, from the service if it sent one')),
  finished_at: orNull(time('Time of the final status, from the service if it sent one')),
  elapsed_ms: orNull(
    milliseconds('Time from sending the create to the first final status that rushes received'),
  ),
  service: any("The service's own object, unchanged; null if the service was not asked"),
} as const

export const RUN_SCHEMA = record('One line for each run.', RUN)

const LIST = {
  ...RUN,
  id: orNull(RUN.id),
  key: orNull(text('Key of a row without an id, for example ~3f2a')),
  address: text('URL of the service; local for --local'),
  profile: text('Profile of the config file'),
  input: any('Input as it was sent; data: URLs as {sha256, bytes, content_type}'),
  request_id: orNull(text("Client's own name for the create, from `rushes mcp`")),
  answer: orNull(
    record('Response to the create, if it did not show the outcome', {
      status: orNull(integer('The HTTP status')),
      text: orNull(text('Body')),
    }),
  ),
} as const

export const LIST_SCHEMA = record('One line for each run created on this machine, newest first.', LIST)

export const SHOW_SCHEMA = record('One run of the journal.', {
  ...LIST,
  again: orNull(
    text('Command that repeats the run, for a POSIX shell; null if an image it used is not kept'),
  ),
})

export const DRY_RUN_SCHEMA = record('The request body that would be sent; one line per run.', {
  model: text('<provider>/<name>'),
  input: record('Input of the model', {}),
})

export const SIDECAR_SCHEMA = record(
  'The file beside each output with --sidecar: what it was created from.',
  {
    model: orNull(text('<provider>/<name>')),
    input: any('Input as it was sent; data: URLs as {sha256, bytes, content_type}; null if unknown'),
    run_id: text('Id that the service assigned to the run'),
    service: text('URL of the service; local for --local'),
    url: text('The URL that the file was downloaded from'),
    sha256: sha256('of the content of the file'),
    bytes: bytes('Size of the file'),
    content_type: text('Content type detected from the first bytes, for example image/png'),
    created_at: RUN.created_at,
    finished_at: RUN.finished_at,
    elapsed_ms: RUN.elapsed_ms,
  },
)

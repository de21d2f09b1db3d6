/**
 * Formats a run as JSON, one row for each key. The lines of `--json` and `list --json`, docs/schemas and `rushes help
 * agents` are generated from these rows. Every key is present, and an unknown value is null.
 */
import type { DownloadedFile } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { JournalFile, JournalRun } from '../../journal/index.js'
import {
  bytes,
  flag,
  integer,
  type JsonSchema,
  list,
  milliseconds,
  orNull,
  record,
  sha256,
  text,
  time,
} from '../../protocol/json-schema.js'
import { KINDS } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { amountOf } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'

/** Data of a run at the end of a command. */
export interface RunRecord {
  readonly id: string
  readonly kind: string | undefined
  readonly model: string | undefined
  /** Last status; undefined when no status was received. */
  readonly state: RunState | undefined
  /** Last response body from the service: the run, or the body of the 201 response to the create. */
  readonly service: unknown
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC, by this machine's clock. Used when the service sends no times. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** Time in ms from sending the create to the first final status. */
  readonly elapsedMs: number | undefined
}

/** A run of the journal with its files. */
interface JournalEntry {
  readonly run: JournalRun
  readonly files: readonly JournalFile[]
}

interface JournalKey {
  readonly schema: JsonSchema
  /** Returns the value of the key; undefined is printed as null. */
  ofEntry(entry: JournalEntry): unknown
}

interface RunKey extends JournalKey {
  ofRecord(record: RunRecord): unknown
  /** Name of the key in the short reference for agents, if different. */
  readonly path?: string
}

/** Keys of the marks of a file. */
export const FILE_MARKS = {
  content_credentials: orNull(
    flag('Whether it has Content Credentials (a C2PA manifest), not verified; null if unknown'),
  ),
  digital_source_type: orNull(
    text("The IPTC's term in the file, for example trainedAlgorithmicMedia, not verified; null if none"),
  ),
} as const

const FILE = record(
  {
    path: text('Path'),
    bytes: bytes('Size'),
    sha256: sha256('of its content'),
    url: text('Output URL that it was downloaded from'),
    content_type: text('Content type detected from the first bytes, for example image/png'),
    ...FILE_MARKS,
  },
  'A downloaded output',
)

export const SHORT_ERROR = record(
  {
    code: text('Code of the service if it sent one, else from the list in docs/exit-codes.md'),
    message: text('Text for people; may change'),
  },
  'Reason',
)

/** Keys that every command prints for a run. */
export const RUN_KEYS = {
  id: {
    schema: text('Id that the service assigned'),
    ofRecord: ({ id }) => id,
    ofEntry: ({ run }) => run.id,
  },
  kind: {
    schema: orNull(text('Kind of output; null if unknown', { enum: KINDS })),
    ofRecord: ({ kind }) => kind,
    ofEntry: ({ run }) => run.kind,
  },
  model: {
    schema: orNull(text('<provider>/<name>')),
    ofRecord: ({ model, service }) => model ?? textField(service, 'model'),
    ofEntry: ({ run }) => run.model,
  },
  status: {
    schema: orNull(
      text(
        "The service's own word; accepted, sending and unconfirmed are set by rushes before the first status request",
      ),
    ),
    ofRecord: ({ state, service }) => state?.status ?? textField(service, 'status'),
    ofEntry: ({ run }) => run.status,
  },
  output: {
    path: 'output.urls',
    schema: orNull(
      record(
        {
          urls: list(
            text('An http or https URL; it may expire; under --local it ends with the process'),
            'Outputs',
          ),
        },
        'Null until the run has succeeded',
      ),
    ),
    ofRecord: ({ state }) => (state?.phase === 'succeeded' ? { urls: state.urls } : null),
    ofEntry: ({ run }) => (run.phase === 'succeeded' ? { urls: run.urls } : null),
  },
  files: {
    path: 'files[].path',
    schema: list(FILE, 'Downloaded files, in the order of the outputs'),
    ofRecord: ({ files }) => files,
    ofEntry: ({ files }) => files,
  },
  error: {
    schema: orNull({
      ...SHORT_ERROR,
      description: 'Reason why the run failed, or why the command failed for this run',
    }),
    ofRecord: ({ error }) => shortError(error),
    ofEntry: ({ run }) => shortError(run.error),
  },
  created_at: {
    schema: orNull(time('Creation time, from the service if it sent one')),
    ofRecord: ({ state, createdAt }) => state?.createdAt ?? createdAt,
    ofEntry: ({ run }) => isoTime(run.createdAtMs),
  },
  finished_at: {
    schema: orNull(time('Time of the final status, from the service if it sent one')),
    ofRecord: ({ state, finishedAt }) => state?.finishedAt ?? finishedAt,
    ofEntry: ({ run }) => isoTime(run.finishedAtMs),
  },
  elapsed_ms: {
    schema: orNull(
      milliseconds('Time from sending the create to the first final status that rushes received'),
    ),
    ofRecord: ({ elapsedMs }) => (elapsedMs === undefined ? null : Math.round(elapsedMs)),
    ofEntry: ({ run }) => run.elapsedMs,
  },
  service: {
    schema: { description: "The service's own object, unchanged; null if the service was not asked" },
    ofRecord: ({ service }) => service,
    ofEntry: () => null,
  },
} as const satisfies Readonly<Record<string, RunKey>>

/** Keys that only runs of the journal have. */
export const JOURNAL_KEYS = {
  key: {
    schema: orNull(text('Key of a row without an id, for example ~3f2a')),
    ofEntry: ({ run }) => run.key,
  },
  address: { schema: text('URL of the service; local for --local'), ofEntry: ({ run }) => run.address },
  profile: { schema: text('Profile of the config file'), ofEntry: ({ run }) => run.profile },
  input: {
    schema: {
      description:
        'Input as it was sent, with the seed that the service chose; data: URLs as {sha256, bytes, content_type}',
    },
    ofEntry: ({ run }) => run.input,
  },
  request_id: {
    schema: orNull(text("Client's own name for the create, from `rushes mcp`")),
    ofEntry: ({ run }) => run.requestId,
  },
  estimate: {
    schema: orNull({ description: 'Estimate of the run; null without a price', type: 'number', minimum: 0 }),
    ofEntry: ({ run: { estimate } }) => estimate && amountOf(estimate.millionths),
  },
  currency: {
    schema: orNull(text('Currency of the estimate')),
    ofEntry: ({ run }) => run.estimate?.currency,
  },
  labels: { schema: list(text('Label'), 'Labels of the run'), ofEntry: ({ run }) => run.labels },
  name: {
    schema: orNull(text('Name of its row in a manifest; null if no batch created it')),
    ofEntry: ({ run }) => run.name,
  },
  manifest: { schema: orNull(text('Absolute path of the manifest')), ofEntry: ({ run }) => run.manifest },
  answer: {
    schema: orNull(
      record(
        { status: orNull(integer('The HTTP status')), text: orNull(text('Body')) },
        'Response to the create, if it did not show the outcome',
      ),
    ),
    ofEntry: ({ run: { answer } }) => answer && { status: answer.status ?? null, text: answer.text ?? null },
  },
} as const satisfies Readonly<Record<string, JournalKey>>

const runKeys: readonly (readonly [string, RunKey])[] = Object.entries(RUN_KEYS)
const journalKeys: readonly (readonly [string, JournalKey])[] = [...runKeys, ...Object.entries(JOURNAL_KEYS)]

export const runJson = (run: RunRecord): object =>
  Object.fromEntries(runKeys.map(([key, { ofRecord }]) => [key, ofRecord(run) ?? null]))

export const listJson = (run: JournalRun, files: readonly JournalFile[]): object =>
  Object.fromEntries(journalKeys.map(([key, { ofEntry }]) => [key, ofEntry({ run, files }) ?? null]))

/** Names of the keys for the short reference for agents: `id`, `output.urls`, `files[].path`. */
export const runKeyPaths = (): readonly string[] => runKeys.map(([key, { path }]) => path ?? key)

const textField = (value: unknown, name: string): string | undefined => {
  const found = isObject(value) ? value[name] : undefined
  return typeof found === 'string' ? found : undefined
}

const shortError = (error: { readonly code: string; readonly message: string } | undefined) =>
  error && { code: error.code, message: error.message }

const isoTime = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()

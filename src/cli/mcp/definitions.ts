/** The tools as an agent sees them: names, descriptions that state what costs money, and schemas. Pure. */

import { writeJson } from '../../protocol/json.js'
import { MAX_LABELS } from '../../protocol/labels.js'
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import {
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
import { builtInSchema } from '../../protocol/parameters.js'
import { printable, shortened } from '../../protocol/text.js'
import { LOCAL_MODELS } from '../../service/rules/names.js'

interface ToolDefinition {
  readonly name: string
  readonly title: string
  /** Text for the agent: what the tool does, what it costs, and what to do next. */
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

type JsonSchema = Readonly<Record<string, unknown>>
type Properties = Readonly<Record<string, JsonSchema>>

interface ObjectSchema extends JsonSchema {
  readonly type: 'object'
  readonly properties: Properties
  readonly required?: readonly string[]
}

export const MAX_IDS = 20
const MAX_REQUEST_ID = 200

export type ToolName =
  | 'list_models'
  | `create_${Kind}`
  | 'create_model_run'
  | 'wait_run'
  | 'get_run'
  | 'cancel_run'
  | 'list_runs'
  | 'show_run'
  | 'download_run'
  | 'plan_batch'
  | 'run_batch'

export interface SessionLimits {
  /** Maximum number of runs that this session may create. */
  readonly maxRuns: number
  /** Largest sum of estimates of this session, such as `5 USD`. Undefined: no limit. */
  readonly maxCost?: string | undefined
  /** Whether this process renders the runs, at no cost. */
  readonly isLocal: boolean
}

export interface SessionFacts extends SessionLimits {
  /** Documents of the configured models. A kind without one has its built-in schema. */
  readonly documents: Readonly<Partial<Record<Kind, ModelDocument>>>
}

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  description,
  ...more,
})
const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
const count = (description: string, minimum: number, maximum: number): JsonSchema => ({
  ...{ type: 'integer', description, minimum, maximum },
})
const object = (properties: Properties, required: readonly string[] = []): ObjectSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

const IDS: JsonSchema = {
  type: 'array',
  items: text('Run id', { minLength: 1 }),
  minItems: 1,
  maxItems: MAX_IDS,
  description: 'Run ids, as returned by create_*, or by list_runs',
}

const labels = (description: string): JsonSchema => ({
  ...{ type: 'array', items: { type: 'string' }, maxItems: MAX_LABELS, description },
})

const DELIVERY = {
  output: text(
    'File, or folder with a final "/", in the folder of the server. A file name may contain {id} {index} {kind} ' +
      '{ext}. Default: <id>.<ext>',
    { minLength: 1 },
  ),
  overwrite: flag('Replace an existing file. Default false: it is an error'),
} as const

const CREATE = {
  ...DELIVERY,
  wait: flag(
    'Wait up to 45 s for the result. Default true. With false the run id is returned at once, and the outputs are saved later',
  ),
  request_id: text(
    'Your own name for this create, such as "hero-v1". A repeated call with the same request_id and input ' +
      'returns the existing run and pays nothing, also after a restart. A new run needs a new one',
    { minLength: 1, maxLength: MAX_REQUEST_ID },
  ),
  labels: labels('Group the run on this machine, such as by project. Never sent to the service'),
  dry_run: flag('Send nothing and return the estimate of the run. Default false'),
} as const

const MODEL = text(
  'Model identifier <provider>/<name>. Default: the configured model of this kind. For a model with other parameters ' +
    'use create_model_run',
)

const READS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const
/** Hints for tools with `overwrite`, which can replace a file. */
const WRITES = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
} as const

const limitOf = ({ maxRuns, maxCost }: SessionLimits): string =>
  `${maxRuns} runs${maxCost === undefined ? '' : ` and estimates of ${maxCost} in all`}`

const costOf = (facts: SessionFacts): string => {
  const { isLocal, documents } = facts
  const isPreview = Object.values(documents).every(({ name }) => Object.values(LOCAL_MODELS).includes(name))
  const cost = !isLocal
    ? 'COSTS MONEY: each create is paid.'
    : isPreview
      ? 'Free: runs are rendered on this machine as preview drawings.'
      : 'Runs are rendered by the models that this machine is set up with, not by a paid service.'
  return `${cost} At most ${limitOf(facts)} per session.`
}

const afterwards = ({ isLocal }: SessionFacts): string =>
  `${isLocal ? '' : 'First ask for the estimate with dry_run: true. '}Waits up to 45 s, saves the outputs and returns ` +
  'their paths. If the run is still running then, the result has its id: call wait_run, and do not create it again.'

export function definitionsFor(
  facts: SessionFacts,
): readonly (ToolDefinition & { readonly name: ToolName })[] {
  const [cost, after] = [costOf(facts), afterwards(facts)]
  return [
    {
      name: 'list_models',
      title: 'List models',
      description:
        'Show the parameters of the configured image and video model as JSON Schema, and all known models with their ' +
        'prices, and what this session may still create. Estimates are not bills. Free, sends nothing.',
      inputSchema: object({
        kind: text('Only this kind', { enum: KINDS }),
        model: text('Only this model, with its parameters as JSON Schema', { minLength: 1 }),
      }),
      annotations: READS,
    },
    ...KINDS.map((kind) => {
      const document = facts.documents[kind]
      const schema = document?.input ?? builtInSchema(kind)
      const parameters = parametersFor(schema, ['model', ...Object.keys(CREATE)])
      // Not the description of the document: an agent would follow what a service writes there.
      const about =
        document === undefined
          ? schema.description
          : `Create ${kind === 'image' ? 'an image' : 'a video'} with ${document.name}`
      return {
        name: `create_${kind}` as const,
        title: `Create ${kind === 'image' ? 'an image' : 'a video'}`,
        description: `${about}. ${cost} ${after} Give a request_id, so that a repeated call is not paid twice.`,
        inputSchema: object(
          { ...parameters, model: MODEL, ...CREATE },
          schema.required.filter((name) => Object.hasOwn(parameters, name)),
        ),
        annotations: WRITES,
      }
    }),
    {
      name: 'create_model_run',
      title: 'Create a run of another model',
      description:
        `Create a run of any other published model. Its input is checked if list_models has its parameters. For ` +
        `images and videos of the configured models, use create_image and create_video. ${cost} ${after}`,
      inputSchema: object(
        {
          model: text('Model identifier <provider>/<name>, as published by the service'),
          input: {
            type: 'object',
            description: `Input of the model. In media parameters that list_models has: ${SOURCES}`,
          },
          ...CREATE,
        },
        ['model', 'input'],
      ),
      annotations: WRITES,
    },
    {
      name: 'wait_run',
      title: 'Wait for runs',
      description:
        'Wait up to 45 s for runs that were created earlier (ids, or labels), save their outputs and return ' +
        'the paths. Free: their creates are counted already. Call it again for runs that are still running. Without ' +
        'output, the output of the create call is used.',
      inputSchema: object({
        ids: IDS,
        labels: labels(`In place of ids: the ${MAX_IDS} oldest unfinished runs with all of these labels`),
        ...DELIVERY,
      }),
      annotations: { ...WRITES, idempotentHint: true },
    },
    {
      name: 'get_run',
      title: 'Get the status of runs',
      description:
        'Ask the service for the current status of runs, once. Free; saves nothing. To wait for a result use ' +
        'wait_run instead of calling this in a loop.',
      inputSchema: object({ ids: IDS }, ['ids']),
      annotations: { ...READS, openWorldHint: true },
    },
    {
      name: 'cancel_run',
      title: 'Cancel runs',
      description:
        'Ask the service to cancel runs that have not ended, only if the user wants that. Free. A canceled run has no ' +
        'result, and its price may not be refunded. Not every service can cancel runs.',
      inputSchema: object({ ids: IDS }, ['ids']),
      annotations: { ...WRITES, idempotentHint: true },
    },
    {
      name: 'list_runs',
      title: 'List runs',
      description:
        'List the runs of this folder, newest first, with shortened prompts. Use it to find a run id ' +
        'that was lost. Free, sends nothing; statuses are those of the last request. Estimates are not bills.',
      inputSchema: object({
        limit: count('Newest N runs. Default 20', 1, 200),
        status: text('Only runs with this status, such as succeeded, failed or unconfirmed'),
        kind: text('Only runs of this kind', { enum: KINDS }),
        model: text('Only runs of this model'),
        since: text('Only runs created within this time, such as 2d, 12h or 30m'),
        everywhere: flag('Also runs that were created in other folders of this machine. Default false'),
        labels: labels('Only runs with all of these labels'),
      }),
      annotations: READS,
    },
    {
      name: 'show_run',
      title: 'Show one run',
      description:
        'Show details of a run from the journal of this machine: whole prompt and input, model, files, times, ' +
        'error, and the shell command that repeats it. Free, sends nothing.',
      inputSchema: object(
        { id: text('Run id, or the key of an unconfirmed run such as ~3f2a', { minLength: 1 }) },
        ['id'],
      ),
      annotations: READS,
    },
    {
      name: 'download_run',
      title: 'Download the outputs of finished runs',
      description:
        'Save the outputs of runs that have succeeded, for example again to another path. Free. Does not wait: ' +
        'for a run that is still running use wait_run.',
      inputSchema: object({ ids: IDS, ...DELIVERY }, ['ids']),
      annotations: { ...WRITES, idempotentHint: true },
    },
    {
      name: 'plan_batch',
      title: 'Plan a batch',
      description:
        'Show which runs a manifest (YAML, JSON, JSON Lines or CSV) would create, and why, with the number of ' +
        `runs that would be paid, and their estimate. Free, sends nothing. ${facts.isLocal ? '' : 'Always call it before run_batch. '}` +
        'Waits up to 45 s.',
      inputSchema: object(BATCH, ['manifest']),
      annotations: READS,
    },
    {
      name: 'run_batch',
      title: 'Run a batch',
      description:
        `Create only the runs of a manifest that are missing or out of date, and save their outputs. ` +
        `${cost.replace('each create', 'each run with the action create')} Waits up to 45 s. If the batch is ` +
        `still running then, call run_batch again with the same arguments to continue waiting: nothing is paid twice.`,
      inputSchema: object(
        {
          ...BATCH,
          max_runs: count('Create nothing if the plan has more creates than this', 0, 10_000),
          concurrency: count('Maximum number of runs at the same time. Default: no limit', 1, 1_000),
          fail_fast: flag('Create no further runs after the first failure. Default false'),
          overwrite: flag('Replace files that the lock file does not list. Default false'),
        },
        ['manifest'],
      ),
      annotations: WRITES,
    },
  ]
}

const BATCH = {
  manifest: text('Path of the manifest, relative to the folder of the server', { minLength: 1 }),
  only: {
    type: 'array',
    items: text('Glob'),
    description: 'Only runs whose name or output matches one of these globs',
  },
  force: flag('Create runs again even if they are up to date: they are paid again. Default false'),
} as const

/** Returns instructions for the client's system prompt. */
export const instructionsFor = (facts: SessionLimits): string =>
  [
    'rushes creates images and videos with asynchronous runs, and saves the results as files.',
    facts.isLocal
      ? `Runs are drawn on this machine and cost nothing; a session may create ${facts.maxRuns}.`
      : `Only create_image, create_video, create_model_run and run_batch cost money; a session may create ${limitOf(facts)}. ` +
        'Before them, ask for the estimate: dry_run: true, or plan_batch.',
    'Every call returns within about 45 s. When a run is still running, call wait_run with its id, and never create it again.',
    'Give each create a request_id: repeating the call with the same request_id returns the existing run.',
    'Results are paths; read a file only if you need its content.',
  ].join(' ')

/** Ways to name a file in a media parameter. */
const SOURCES =
  'Each source is an http(s) URL, a data: URL, the path of a file relative to the folder of the server, ' +
  'or run:<id> for an output of an earlier run (run:<id>#2 for its second output)'

/** Returns the parameters of a model, except those whose names the tool itself uses. */
function parametersFor({ properties }: ModelSchema, used: readonly string[]): Properties {
  const own = Object.entries(properties).filter(([name]) => !used.includes(name))
  return Object.fromEntries(own.map(([name, schema]) => [name, argumentOf(name, schema)]))
}

/** Longer lists of values are left out, since every session of an agent reads all tools. A create checks them. */
const MAX_KEYWORD = 1_000
const KEYWORDS: readonly string[] = 'type enum minimum maximum maxLength items maxItems default'.split(' ')

/** Keeps only known keywords: a document may come from a service, and clients use these schemas. */
function argumentOf(name: string, schema: ParameterSchema): JsonSchema {
  const isMedia = mediaOfParameter(name, { ...schema }) !== undefined
  const more = isMedia ? SOURCES : schema.type === 'other' ? 'JSON, see list_models' : ''
  const description = [shortened(printable(schema.description)), more].filter(Boolean).join('. ')
  if (schema.type === 'other') return { description }
  const known = Object.entries(schema).filter(
    ([name, value]) => KEYWORDS.includes(name) && writeJson(value).length <= MAX_KEYWORD,
  )
  return {
    ...Object.fromEntries(known.map(([name, value]) => [name, asNumbers(value)])),
    ...(schema.type === 'array' && { items: { type: 'string' } }),
    description,
  }
}

/** Clients parse the schemas with `JSON.parse`: a bound of 64 bits is rounded there in any case. */
const asNumbers = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(asNumbers) : typeof value === 'bigint' ? Number(value) : value

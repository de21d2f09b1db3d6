/** The tools as an agent sees them: names, descriptions that state what costs money, and schemas. Pure. */

import { writeJson } from '../../protocol/json.js'
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import {
  builtInSchema,
  type Kind,
  type ModelDocument,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'

type JsonSchema = Readonly<Record<string, unknown>>
type Properties = Readonly<Record<string, JsonSchema>>

export interface Tool {
  /** Text for the agent: what the tool does, what it costs, and what to do next. */
  readonly description: string
  readonly inputSchema: JsonSchema & { readonly properties: Properties }
  readonly annotations: Hints
}

interface Hints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
}

const READS: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true }
/** It can replace a file, or ends a run, and costs nothing. */
const WRITES: Hints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true }
const PAYS: Hints = { ...WRITES, idempotentHint: false }

export interface SessionFacts {
  /** Maximum number of runs that this session may create. */
  readonly maxRuns: number
  /** Largest sum of estimates of this session, such as `5 USD`. Undefined: no limit. */
  readonly maxCost?: string | undefined
  /** Whether this process renders the runs, at no cost. */
  readonly isLocal: boolean
  /** Documents of the configured models. A kind without one has its built-in schema. */
  readonly documents: Readonly<Partial<Record<Kind, ModelDocument>>>
}

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  description,
  ...more,
})
const name = (description: string): JsonSchema => text(description, { minLength: 1 })
const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
const list = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'array',
  items: { type: 'string' },
  description,
  ...more,
})
const object = (properties: Properties, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

const IDS = list('Run ids, as returned by create_*, or by list_runs', {
  items: name('Run id'),
  minItems: 1,
  maxItems: 20,
})

const DELIVERY = {
  output: name(
    'File, or folder with a final "/", in the folder of the server. A file name may contain {id} {index} {kind} ' +
      '{ext}. Default: <id>.<ext>',
  ),
  overwrite: flag('Replace an existing file. Default false: it is an error'),
}

const CREATE = {
  ...DELIVERY,
  wait: flag(
    'Wait up to 45 s for the result. Default true. With false the run id is returned at once, and the outputs are saved later',
  ),
  request_id: text(
    'Your own name for this create, such as "hero-v1". A repeated call with the same request_id and input ' +
      'returns the existing run and pays nothing, also after a restart. A new run needs a new one',
    { minLength: 1, maxLength: 200 },
  ),
  dry_run: flag('Send nothing and return the estimate of the run. Default false'),
}

const BATCH = {
  manifest: name('Path of the manifest, relative to the folder of the server'),
  only: list('Only runs whose name or output matches one of these globs'),
}

const limitOf = ({ maxRuns, maxCost }: SessionFacts): string =>
  `${maxRuns} runs${maxCost === undefined ? '' : ` and estimates of ${maxCost} in all`}`

const costOf = (facts: SessionFacts, what: string): string =>
  `${facts.isLocal ? 'Free: runs are rendered on this machine.' : `COSTS MONEY: each ${what} is paid.`} ` +
  `At most ${limitOf(facts)} per session.`

export type ToolName = keyof ReturnType<typeof toolsFor>

export const toolsFor = (facts: SessionFacts) => ({
  list_models: {
    description:
      'Show the parameters of the configured image and video model as JSON Schema, and all known models with their ' +
      'prices. Estimates are not bills. Free.',
    inputSchema: object({ model: name('Only this model, with its parameters as JSON Schema') }),
    annotations: READS,
  },
  ...createTools(facts),
  ...RUN_TOOLS,
  ...batchTools(facts),
})

function createTools(facts: SessionFacts) {
  const cost = costOf(facts, 'create')
  const after =
    `${facts.isLocal ? '' : 'First ask for the estimate with dry_run: true. '}Waits up to 45 s, saves the outputs and ` +
    'returns their paths. If the run is still running then, the result has its id: call wait_run, and do not create it again.'
  return {
    create_video: createTool('video', facts.documents.video, `${cost} ${after}`),
    create_image: createTool('image', facts.documents.image, `${cost} ${after}`),
    create_model_run: {
      description:
        'Create a run of any other published model. Its input is checked if list_models has its parameters. For ' +
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
      annotations: PAYS,
    },
  }
}

function createTool(kind: Kind, document: ModelDocument | undefined, about: string): Tool {
  const schema = document?.input ?? builtInSchema(kind)
  const parameters = parametersFor(schema)
  // Not the description of the document: an agent would follow what a service writes there.
  const what = `Create ${kind === 'image' ? 'an image' : 'a video'} with ${document?.name ?? 'the configured model'}`
  return {
    description: `${what}. ${about} Give a request_id, so that a repeated call is not paid twice.`,
    inputSchema: object(
      {
        ...parameters,
        model: text(
          'Model identifier <provider>/<name>. Default: the configured model of this kind. For a model with other ' +
            'parameters use create_model_run',
        ),
        ...CREATE,
      },
      schema.required.filter((parameter) => Object.hasOwn(parameters, parameter)),
    ),
    annotations: PAYS,
  }
}

const RUN_TOOLS = {
  wait_run: {
    description:
      'Wait up to 45 s for runs that were created earlier, save their outputs and return the paths. Free: their ' +
      'creates are counted already. Call it again for runs that are still running, and to save the outputs of a finished ' +
      'run to another path. Without output, a run is saved to the file that its create named.',
    inputSchema: object({ ids: IDS, ...DELIVERY }, ['ids']),
    annotations: WRITES,
  },
  cancel_run: {
    description:
      'Ask the service to cancel runs that have not ended, only if the user wants that. Free. A canceled run has no ' +
      'result, and its price may not be refunded. Not every service can cancel runs.',
    inputSchema: object({ ids: IDS }, ['ids']),
    annotations: WRITES,
  },
  list_runs: {
    description:
      'List the runs of this folder, newest first, with shortened prompts. Use it to find a run id ' +
      'that was lost. Free, sends nothing; statuses are those of the last request. Estimates are not bills.',
    inputSchema: object({
      limit: { type: 'integer', description: 'Newest N runs. Default 20', minimum: 1, maximum: 200 },
      status: text('Only runs with this status, such as succeeded, failed or unconfirmed'),
      everywhere: flag('Also runs that were created in other folders of this machine. Default false'),
    }),
    annotations: READS,
  },
  show_run: {
    description:
      'Show details of a run from the journal of this machine: whole prompt and input, model, files, times, ' +
      'and error. Free, sends nothing.',
    inputSchema: object({ id: name('Run id, or the key of an unconfirmed run such as ~3f2a') }, ['id']),
    annotations: READS,
  },
}

const batchTools = (facts: SessionFacts) => ({
  plan_batch: {
    description:
      'Show which runs a manifest (YAML, JSON, JSON Lines or CSV) would create, and why, with the number of ' +
      `runs that would be paid, and their estimate. Free. ${facts.isLocal ? '' : 'Always call it before run_batch.'}`,
    inputSchema: object(BATCH, ['manifest']),
    annotations: READS,
  },
  run_batch: {
    description:
      'Create only the runs of a manifest that are missing or out of date, and save their outputs. ' +
      `${costOf(facts, 'run with the action create')} Waits up to 45 s. If the batch is ` +
      'still running then, call run_batch again with the same arguments to continue waiting: nothing is paid twice.',
    inputSchema: object(
      {
        ...BATCH,
        overwrite: flag('Replace files that the lock file does not list. Default false'),
      },
      ['manifest'],
    ),
    annotations: PAYS,
  },
})

/** Ways to name a file in a media parameter. */
const SOURCES =
  'Each source is an http(s) URL, a data: URL, the path of a file relative to the folder of the server, ' +
  'or run:<id> for an output of an earlier run (run:<id>#2 for its second output)'

/** Returns the parameters of a model, except those whose names the tool itself uses. */
function parametersFor({ properties }: ModelSchema): Properties {
  const used = ['model', ...Object.keys(CREATE)]
  const own = Object.entries(properties).filter(([parameter]) => !used.includes(parameter))
  return Object.fromEntries(own.map(([parameter, schema]) => [parameter, argumentOf(parameter, schema)]))
}

const KEYWORDS = ['type', 'enum', 'minimum', 'maximum', 'maxLength', 'maxItems', 'default']
const ITEM_KEYWORDS = ['type', 'enum']

/** Keeps only known keywords: a document may come from a service, and clients use these schemas. */
function argumentOf(parameter: string, schema: ParameterSchema): JsonSchema {
  const isMedia = mediaOfParameter(parameter, { ...schema }) !== undefined
  const isOther = schema.type === 'other'
  const more = isMedia ? SOURCES : isOther ? 'JSON, see list_models' : ''
  const description = [shortened(schema.description), more].filter(Boolean).join('. ')
  if (isOther) return { description }
  const known = {
    ...pick(schema, KEYWORDS),
    // Elsewhere they are not checked.
    ...(schema.type === 'array' && { items: pick(schema.items, ITEM_KEYWORDS) }),
  }
  // Clients parse the schemas with `JSON.parse`, which rounds a bound of 64 bits.
  return { ...JSON.parse(writeJson(known)), description }
}

const pick = (schema: object, keywords: readonly string[]): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => keywords.includes(keyword)))

/** Tools for existing runs: wait, status, download, and queries of the journal. */
import { RushesError, usageError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { schemaJson } from '../../protocol/model-document.js'
import { KINDS } from '../../protocol/models.js'
import { builtInSchema } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, printable, printableJson, shortened } from '../../protocol/text.js'
import { cancelCommand } from '../commands/cancel.js'
import { listCommand } from '../commands/list.js'
import { showCommand } from '../commands/show.js'
import { statusCommand } from '../commands/status.js'
import type { Context } from '../context/context.js'
import { labelsOf } from '../flags/labels.js'
import { pricedJson } from '../models/show-models.js'
import { allUnfinished, idsNamed } from '../runs/journal-rows.js'
import { revisit } from '../runs/revisit.js'
import { selectIds } from '../runs/where.js'
import { modelFor } from '../settings/required-settings.js'
import { leftJson } from './allowance.js'
import { errorAnswer, runResult, runsAnswer } from './answers.js'
import { MAX_IDS } from './definitions.js'
import { interrupt, type Job, type JobObserver, type JobOutcome } from './job.js'
import {
  type McpSession,
  moneyOf,
  type SavedDelivery,
  type SessionTask,
  startTask,
  waitFor,
} from './session.js'
import { type Answer, type Call, shownPath } from './tool.js'

const DEFAULT_LIST = 20
/** Maximum length of a prompt in a list, in characters. */
const MAX_PROMPT = 120

/** Returns the ids of the call, or of the oldest unfinished runs with its labels. Throws `usage`. */
async function idsOf({ base }: McpSession, { args: { ids, labels } }: Call): Promise<readonly string[]> {
  if (Array.isArray(ids) === Array.isArray(labels)) throw usageError('Give either ids or labels.')
  if (Array.isArray(ids)) return idsNamed(base, ids)
  const found = await allUnfinished(base, labelsOf(labels as readonly string[], 'labels'))
  if (found.length === 0)
    throw usageError('No unfinished runs have these labels.', 'list_runs shows the runs of this folder.')
  return found.slice(0, MAX_IDS).map(({ id }) => id)
}

interface CallDelivery extends SavedDelivery {
  /** Whether the call sets an output. */
  readonly isNamed: boolean
}

function deliveryIn({ state: { paths } }: McpSession, { args }: Call, runs: number): CallDelivery {
  const output = typeof args.output === 'string' ? args.output : undefined
  const place = paths.output(output)
  if (runs > 1 && !/[\\/]$/.test(place) && !place.includes('{id}'))
    throw usageError(
      `output: ${output} names one file, but ${runs} runs were given.`,
      'Use a folder ("assets/") or {id} in the file name ("assets/{id}.{ext}").',
    )
  return { output: place, overwrite: args.overwrite === true, isNamed: output !== undefined }
}

/** Runs `wait_run`, or `download_run`, which does not wait for unfinished runs. */
export async function followRuns(
  session: McpSession,
  call: Call,
  { isDownload }: { readonly isDownload: boolean },
): Promise<Answer> {
  const ids = await idsOf(session, call)
  const requested = deliveryIn(session, call, ids.length)
  const jobs = ids.map((id) => taskFor(session, id, requested, isDownload).job)
  await waitFor(session, Promise.all(jobs.map(({ done }) => done)), {
    call,
    jobs,
    describe: () => ids.map((id, at) => `${id}: ${jobs[at]?.states.get(id)?.status ?? 'waiting'}`).join(', '),
  })
  return answerOf(jobs, async (job) =>
    runResult(job, job.isDone ? await job.done : undefined, { mustBeFinished: isDownload && job.isDone }),
  )
}

async function answerOf(
  jobs: readonly Job[],
  resultOf: (job: Job) => Promise<ReturnType<typeof runResult>>,
): Promise<Answer> {
  const warnings = jobs.flatMap(({ collected }) => collected.warnings)
  return runsAnswer(await Promise.all(jobs.map(resultOf)), { warnings })
}

/**
 * Returns the task that already follows the run, or starts one. If the call sets another output, waits for the existing
 * task first.
 */
function taskFor(session: McpSession, id: string, requested: CallDelivery, isDownload: boolean): SessionTask {
  const active = [...session.state.running].find(
    ({ job, delivery }) => job.id === id && delivery !== undefined,
  )
  const saved = requested.isNamed ? requested : (session.state.deliveries.get(id) ?? requested)
  const delivery = { output: saved.output, overwrite: requested.overwrite || saved.overwrite }
  if (active !== undefined && !isDownload && !active.job.isStopped) {
    const isSame =
      active.delivery?.output === delivery.output && active.delivery.overwrite === delivery.overwrite
    if (isSame) return active
  }
  return startTask(session, { id, delivery }, async (ctx, observer) => {
    if (active !== undefined && !isDownload) await active.job.done
    const { ctx: at } = await selectIds(ctx, [id])
    await revisit(at, [id], { ...delivery, download: true }, { isDownload, many: 'same command', observer })
  })
}

/** Sends one status request for each run, or one request to cancel it. */
export async function getRuns(
  session: McpSession,
  call: Call,
  tool: 'get_run' | 'cancel_run' = 'get_run',
): Promise<Answer> {
  const ids = await idsOf(session, call)
  const ask = (ctx: Context, id: string, { onState }: JobObserver) =>
    tool === 'cancel_run'
      ? cancelCommand(ctx, { ids: [id], yes: true, onState })
      : statusCommand(ctx, { ids: [id], exitStatus: false, onState })
  const jobs = ids.map((id) => startTask(session, { id }, (ctx, observer) => ask(ctx, id, observer)).job)
  const waited = await waitFor(session, Promise.all(jobs.map(({ done }) => done)), {
    call,
    jobs,
    describe: () => 'asking the service',
  })
  if (waited === 'late') for (const job of jobs) interrupt(job, 'SIGTERM')
  return answerOf(jobs, async (job) =>
    runResult(job, waited === 'done' ? await job.done : withoutAnswer(job, tool), {}),
  )
}

function withoutAnswer({ id, collected }: Job, tool: 'get_run' | 'cancel_run'): JobOutcome {
  const error = new RushesError('network', 'The service has not answered within 45 s.', {
    runId: id,
    hint:
      tool === 'cancel_run'
        ? 'The run may still be running. Call cancel_run again.'
        : 'The run is not affected. Call get_run again.',
  })
  return { ...collected, errors: [error] }
}

/** Runs a command that sends no request. */
const runLocally = (session: McpSession, work: (ctx: Context) => Promise<unknown>): Promise<JobOutcome> =>
  startTask(session, {}, work).job.done

export async function listRuns(session: McpSession, call: Call): Promise<Answer> {
  const { limit = DEFAULT_LIST, status, kind, model, since, everywhere = false, labels = [] } = call.args
  const label = labelsOf(labels as readonly string[], 'labels')
  const word = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const filters = { status: word(status), kind: word(kind), model: word(model), since: word(since) }
  const definedFilters = Object.fromEntries(
    Object.entries(filters).filter(([, value]) => value !== undefined),
  )
  const { objects, errors, warnings } = await runLocally(session, (ctx) =>
    listCommand(ctx, { limit: String(limit), here: everywhere !== true, label, ...definedFilters }),
  )
  const [error] = errors
  if (error !== undefined) return errorAnswer(error, warnings)
  const runs = objects.filter(isObject).map(briefOf)
  return {
    text:
      runs.length === 0
        ? `No runs found${everywhere === true ? '' : ' in this folder'}.`
        : runs.map(lineOf).join('\n'),
    structured: { runs, warnings },
  }
}

type JournalLine = Readonly<Record<string, unknown>>
type Brief = JournalLine & { readonly prompt: string; readonly files: readonly string[] }

const BRIEF = 'id key request_id status kind model created_at address estimate currency labels'.split(' ')

const briefOf = (line: JournalLine): Brief => ({
  ...Object.fromEntries(BRIEF.map((key) => [key, line[key]])),
  prompt: shortened(promptIn(line.input), MAX_PROMPT),
  files: Array.isArray(line.files) ? line.files.map(({ path }) => path) : [],
})

const promptIn = (input: unknown): string =>
  printable(isObject(input) && typeof input.prompt === 'string' ? input.prompt : writeJson(input ?? null))

const lineOf = ({ id, key, status, kind, created_at, prompt, files }: Brief): string =>
  [id ?? key, status, kind ?? 'model', created_at, files.map(shownPath).join(' ') || 'no files', prompt].join(
    ' | ',
  )

export async function showRun(session: McpSession, call: Call): Promise<Answer> {
  const { objects, errors, warnings } = await runLocally(session, (ctx) =>
    showCommand(ctx, { name: String(call.args.id) }),
  )
  const [error] = errors
  const [run] = objects
  if (error !== undefined || !isObject(run))
    return errorAnswer(error ?? usageError('The run has no row.'), warnings)
  return { text: printableJson(run), structured: { run, warnings } }
}

/** Maximum number of models in a list. */
const MAX_MODELS = 200

export async function listModels(session: McpSession, { args }: Call): Promise<Answer> {
  const { base } = session
  const { prices, allowance } = await moneyOf(session)
  const models = await base.models()
  const all = models.list().map(({ document }) => document)
  if (typeof args.model === 'string') {
    const document = models.find(args.model)
    if (document === undefined)
      throw usageError(
        `The parameters of ${printable(args.model)} are not known here.${didYouMean(
          args.model,
          all.map(({ name }) => name),
        )}`,
        'Ask the user to run `rushes models --refresh`. Or use create_model_run, which then sends the input unchanged.',
      )
    return modelsAnswer({ model: pricedJson(document, prices), ...leftJson(allowance) })
  }
  const kinds = KINDS.filter((kind) => args.kind === undefined || args.kind === kind)
  const configured = await Promise.all(
    kinds.map(async (kind) => {
      const name = await modelFor(base, kind)
      const document = name === undefined ? undefined : models.find(name)
      const schema = document?.kind === kind ? document.input : builtInSchema(kind)
      return { kind, name: name ?? null, schema: schemaJson(schema) }
    }),
  )
  const known = all.filter(({ kind }) => kinds.includes(kind))
  const structured = {
    models: Object.fromEntries(configured.map(({ kind, schema }) => [kind, schema])),
    configured: Object.fromEntries(configured.map(({ kind, name }) => [kind, name])),
    known: known.slice(0, MAX_MODELS).map((document) => {
      const { price, price_source, currency } = pricedJson(document, prices)
      const { name, kind, input } = document
      return { name, kind, price, price_source, currency, parameters: Object.keys(input.properties) }
    }),
    known_left_out: Math.max(0, known.length - MAX_MODELS),
    ...leftJson(allowance),
  }
  return modelsAnswer(
    structured,
    known.slice(0, MAX_MODELS).map((document) => {
      const { price, currency } = pricedJson(document, prices)
      const isDefault = configured.some(({ name }) => name === document.name)
      const cost = isObject(price) && price.run !== undefined ? `${price.run} ${currency} a run` : 'no price'
      return [printable(document.name), document.kind, cost, ...(isDefault ? ['default'] : [])].join(' | ')
    }),
  )
}

/** `table`: the names, which an agent reads first. */
const modelsAnswer = (structured: Answer['structured'], table: readonly string[] = []): Answer => ({
  text: [...table, printableJson(structured)].join('\n'),
  structured,
})

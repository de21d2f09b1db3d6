/** Tools for runs that exist, and for what this machine knows: each runs a command and returns its `--json`. */
import { RushesError, usageError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { amountText, inMillionths } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'
import { printable, printableJson, shortened } from '../../protocol/text.js'
import type { BatchFlags } from '../batch/options.js'
import type { BatchObserver } from '../batch/prepare.js'
import type { Context } from '../context/context.js'
import { labelsOf } from '../flags/labels.js'
import type { CostLimit } from '../models/cost-limit.js'
import { allUnfinished, idsNamed, selectIds } from '../runs/journal-rows.js'
import { revisit } from '../runs/revisit.js'
import type { FilterOptions } from '../runs/run-selection.js'
import { type Answer, errorAnswer, leftJson, runsAnswer, shownPath } from './answers.js'
import { outputIn } from './call-paths.js'
import { MAX_IDS } from './definitions.js'
import type { Call, Job, McpSession } from './session.js'

/** The commands that tools run. */
export interface Commands {
  batch(ctx: Context, request: BatchRun): Promise<number>
  cancel(ctx: Context, options: Asked & { readonly yes: boolean }): Promise<number>
  list(ctx: Context, options: FilterOptions): Promise<number>
  models(ctx: Context, options: { name: string | undefined; refresh: boolean }): Promise<number>
  show(ctx: Context, options: { readonly name: string }): Promise<number>
  status(ctx: Context, options: Asked & { readonly exitStatus: boolean }): Promise<number>
}

interface BatchRun {
  readonly manifest: string
  readonly flags: BatchFlags
  readonly onMedia: (path: string, parameter: string) => void
  readonly limit: CostLimit
  readonly observer?: BatchObserver
}

interface Asked {
  readonly ids: readonly string[]
  onState(state: RunState): void
}

const DEFAULT_LIST = 20
/** Maximum length of a prompt in a list, in characters. */
const MAX_PROMPT = 120

/** Returns the ids of the call, or of the oldest unfinished runs with its labels. Throws `usage`. */
async function idsOf({ ctx }: McpSession, { args: { ids, labels } }: Call): Promise<readonly string[]> {
  if (Array.isArray(ids) === Array.isArray(labels)) throw usageError('Give either ids or labels.')
  if (Array.isArray(ids)) return idsNamed(ctx, ids)
  const found = await allUnfinished(ctx, labelsOf(labels as readonly string[], 'labels'))
  if (found.length === 0)
    throw usageError('No unfinished runs have these labels.', 'list_runs shows the runs of this folder.')
  return found.slice(0, MAX_IDS).map(({ id }) => id)
}

/** Runs `wait_run`, or `download_run`, which does not wait for unfinished runs. */
export async function followRuns(session: McpSession, call: Call, isDownload: boolean): Promise<Answer> {
  const ids = await idsOf(session, call)
  const { output } = call.args
  const place = outputIn(session.options, output)
  if (ids.length > 1 && !/[\\/]$/.test(place) && !place.includes('{id}'))
    throw usageError(
      `output: ${output} names one file, but ${ids.length} runs were given.`,
      'Use a folder ("assets/") or {id} in the file name ("assets/{id}.{ext}").',
    )
  const jobs = ids.map((id) => {
    const saved = output === undefined ? session.deliveries.get(id) : undefined
    const overwrite = call.args.overwrite === true || saved?.overwrite === true
    return followRun(session, id, { output: saved?.output ?? place, overwrite }, isDownload)
  })
  const waited = await session.wait(Promise.all(jobs.map(({ done }) => done)), call, jobs)
  return runsAnswer(jobs, { mustBeFinished: isDownload && waited === 'done' })
}

/** Returns the job that already follows the run. One with another output ends first. */
function followRun(
  session: McpSession,
  id: string,
  delivery: { readonly output: string; readonly overwrite: boolean },
  isDownload: boolean,
): Job {
  const active = isDownload
    ? undefined
    : [...session.jobs].find((job) => job.id === id && job.options.delivery !== undefined)
  const { output, overwrite } = active?.options.delivery ?? {}
  const isSame = output === delivery.output && overwrite === delivery.overwrite
  if (active !== undefined && isSame && !active.isStopped) return active
  return session.start({ id, delivery }, async (ctx, observer) => {
    await active?.done
    const { ctx: at } = await selectIds(ctx, [id])
    await revisit(at, [id], { ...delivery, download: true }, { isDownload, many: 'same command', observer })
  })
}

/** Sends one status request for each run, or one request to cancel it. */
export async function getRuns(session: McpSession, call: Call, ask: 'status' | 'cancel', commands: Commands) {
  const ids = await idsOf(session, call)
  const jobs = ids.map((id) =>
    session.start({ id }, (ctx, { onState }) =>
      ask === 'cancel'
        ? commands.cancel(ctx, { ids: [id], yes: true, onState })
        : commands.status(ctx, { ids: [id], exitStatus: false, onState }),
    ),
  )
  const waited = await session.wait(Promise.all(jobs.map(({ done }) => done)), call, jobs)
  if (waited === 'late')
    for (const job of jobs.filter(({ isDone }) => !isDone)) {
      job.errors.unshift(
        new RushesError('network', 'The service has not answered within 45 s.', {
          ...{ runId: job.id, hint: 'The run may still be running. Call this tool again.' },
        }),
      )
      job.stop('SIGTERM')
    }
  return runsAnswer(jobs)
}

/** Runs a command, and returns the objects that it printed. */
async function printed(session: McpSession, call: Call, work: (ctx: Context) => Promise<unknown>) {
  const job = session.start({}, work)
  await session.wait(job.done, call, [job])
  return { objects: job.objects.filter(isObject), errors: job.errors, warnings: job.warnings }
}

export async function listRuns(session: McpSession, call: Call, { list }: Commands): Promise<Answer> {
  const { limit = DEFAULT_LIST, everywhere = false, labels = [], ...filters } = call.args
  const options = { ...filters, limit: String(limit), here: everywhere !== true }
  const label = labelsOf(labels as readonly string[], 'labels')
  const { objects, ...others } = await printed(session, call, (ctx) => list(ctx, { ...options, label }))
  if (others.errors.length > 0) return errorAnswer(others)
  const runs = objects.map(briefOf)
  const none = `No runs found${everywhere === true ? '' : ' in this folder'}.`
  return { lines: runs.length === 0 ? [none] : runs.map(lineOf), structured: { runs }, ...others }
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

export async function showRun(session: McpSession, call: Call, { show }: Commands): Promise<Answer> {
  const { objects, ...others } = await printed(session, call, (ctx) =>
    show(ctx, { name: String(call.args.id) }),
  )
  const [run] = objects
  return run === undefined
    ? errorAnswer(others)
    : { lines: [printableJson(run)], structured: { run }, ...others }
}

/** Maximum number of models in a list. */
const MAX_MODELS = 200

export async function listModels(session: McpSession, call: Call, { models }: Commands): Promise<Answer> {
  const name = typeof call.args.model === 'string' ? call.args.model : undefined
  const { objects, ...others } = await printed(session, call, (ctx) => models(ctx, { name, refresh: false }))
  const [found] = objects
  if (found === undefined) return errorAnswer(others)
  const left = leftJson(await session.limit())
  if (name !== undefined) return modelsAnswer({ model: found, ...left }, [], others)
  const kinds = KINDS.filter((kind) => call.args.kind === undefined || call.args.kind === kind)
  const all = (Array.isArray(found.models) ? found.models : []).filter(isObject)
  const byDefault = (kind: Kind) => all.find((each) => each.kind === kind && each.default === true)
  const known = all.filter(({ kind, source }) => kinds.some((each) => each === kind) && source !== 'built-in')
  const shown = known.slice(0, MAX_MODELS)
  const structured = {
    models: Object.fromEntries(kinds.map((kind) => [kind, byDefault(kind)?.input ?? found[kind]])),
    configured: Object.fromEntries(kinds.map((kind) => [kind, byDefault(kind)?.name ?? null])),
    known: shown.map(({ name: each, kind, price, price_source, currency, input }) => ({
      ...{ name: each, kind, price, price_source, currency },
      parameters: isObject(input) && isObject(input.properties) ? Object.keys(input.properties) : [],
    })),
    known_left_out: known.length - shown.length,
    ...left,
  }
  const table = shown.map(({ name: each, kind, price, currency, default: isDefault }) => {
    const cost = isObject(price)
      ? `${amountText(inMillionths(Number(price.run)), String(currency))} per run`
      : 'no price'
    return [printable(String(each)), kind, cost, ...(isDefault === true ? ['default'] : [])].join(' | ')
  })
  return modelsAnswer(structured, table, others)
}

/** `table`: the names, which an agent reads first. */
const modelsAnswer = (
  structured: Answer['structured'],
  table: readonly string[],
  others: Pick<Answer, 'errors' | 'warnings'>,
): Answer => ({ lines: [...table, printableJson(structured)], structured, ...others })

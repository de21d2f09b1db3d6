/** Prints a plan, or the results of a batch: a line for each row, notes, a summary, and the reports for CI. */
import { relative, resolve } from 'node:path'
import { outputsOf } from '../../batch/lock/lock.js'
import { OPEN } from '../../batch/manifest/outputs.js'
import type { RowAction } from '../../batch/plan/decide.js'
import { isInPlace } from '../../batch/plan/disk.js'
import { activeSteps, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { inactiveResult, type RowResult } from '../../batch/results/rows.js'
import type { RushesError } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import { addTo } from '../../protocol/parse.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { listNames, printable } from '../../protocol/text.js'
import { formatDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import type { CostEstimate, Prices } from '../models/prices.js'
import { ErrorGroups } from '../runs/error-groups.js'
import { resumeCommand } from '../settings/globals.js'
import { plural } from '../terminal/format.js'
import { printTable } from '../terminal/table.js'
import { annotate, MAX_LINE_ANNOTATIONS, writeJobSummary, writeReport } from './ci-reports.js'
import { type PreparedBatch, pricedRun, sumPlan } from './prepare.js'

export async function printPlan(ctx: Context, batch: PreparedBatch): Promise<void> {
  const { out } = ctx
  const { plan, options } = batch
  await reportPlan(ctx, batch, out.mode.json)
  const cells = out.stdoutIsTerminal ? shownCells : cellsOf
  const rows = selectedSteps(plan).map((step) => cells(step))
  if (!out.mode.json && rows.length > 0) await printTable(out, PLAN_HEADER, rows)
  warnOfLeft(ctx, plan)
  out.note(planLine(ctx, plan, options.limit.prices))
}

/** Writes the plan to the `--report` file and to the job summary. `prints`: whether it is also printed, as lines of JSON. */
export async function reportPlan(ctx: Context, batch: PreparedBatch, prints: boolean): Promise<void> {
  const { plan, manifest, options } = batch
  const { prices } = options.limit
  const estimate = sumPlan(plan, prices)
  const runs = selectedSteps(plan).map(stepJson)
  const summary = {
    ...plan.counts,
    models: Object.fromEntries([...estimate.byModel].map(([model, each]) => [model, each.runs])),
    ...estimateJson(estimate),
    not_waited_for: leftRunsJson(plan),
  }
  if (prints) for (const each of [...runs, { summary }]) ctx.out.json(each)
  if (options.mode !== 'dry run') await writeReport(ctx, options.flags.report, { runs, summary })
  const rows = openSteps(plan).map((step) => shownCells(step))
  writeJobSummary(ctx, { manifest, line: planLine(ctx, plan, prices), rows })
}

/** Annotates the rows that are not up to date. Returns their number. */
export function annotatePlan(ctx: Context, { plan, manifest: { path } }: PreparedBatch): number {
  const open = openSteps(plan)
  for (const step of open.slice(0, MAX_LINE_ANNOTATIONS)) {
    const [action, title = '', file, reason] = shownCells(step)
    const message = `${file}: ${action}${reason ? ` (${reason})` : ''}`
    annotate(ctx, { title, message, at: { path, line: step.entry.at.line } })
  }
  return open.length
}

const PLAN_HEADER = ['ACTION', 'NAME', 'FILE', 'REASON']

const selectedSteps = ({ steps }: Plan): readonly PlanStep[] =>
  steps.filter(({ action }) => action.do !== 'skip')

/** The selected rows that are not up to date. */
const openSteps = (plan: Plan): readonly PlanStep[] =>
  selectedSteps(plan).filter(({ action }) => action.do !== 'up_to_date')

/** Maximum number of warnings: one screen. `--json` has all runs. */
const MAX_SHOWN = 20

/** Warns about runs that no row uses: they may be paid for. */
export function warnOfLeft({ out, globals }: Context, { left }: Plan): void {
  for (const { name, run, key } of left.slice(0, MAX_SHOWN))
    if (run === undefined)
      out.warn(
        `${name}: the outcome of an earlier create${key === undefined ? '' : ` (${key})`} is unknown. ` +
          'A run may exist that nothing waits for: check the runs of your account.',
      )
    else
      out.warn(
        `${name}: ${run} has not been downloaded, and this batch does not wait for it. ` +
          `To get its result: ${resumeCommand(globals, 'wait', [run], ['-d'])}`,
      )
  const more = left.length - MAX_SHOWN
  if (more > 0) out.warn(`${more} more runs are not waited for. --json names them all.`)
}

/** All keys are always present. Unknown values are null. */
const leftRunsJson = ({ left }: Plan) =>
  left.map(({ name, run, key }) => ({ name, run: run ?? null, key: key ?? null }))

/** Collects and prints the results of the rows. */
export class Report {
  /** Names of the rows whose creates were accepted, or whose outcome is unknown. */
  readonly sent = new Set<string>()
  readonly #ctx: Context
  readonly #batch: PreparedBatch
  readonly #startedAtMs: number
  readonly #results = new Map<string, RowResult>()
  /** The objects of the rows that were printed. */
  readonly #rows: unknown[] = []
  readonly #errors = new ErrorGroups()
  /** Names of the blocked rows, for each row that blocks others. */
  readonly #blocked = new Map<string, string[]>()
  #annotations = 0

  constructor(ctx: Context, batch: PreparedBatch) {
    this.#ctx = ctx
    this.#batch = batch
    this.#startedAtMs = ctx.clock.monotonic()
  }

  row(result: RowResult): void {
    const { out } = this.#ctx
    const { step, made, error, blockedBy, warnings = [] } = result
    const { name } = step.entry
    this.#results.set(name, result)
    // Not printed, like rows that were up to date from the start.
    if (result.result === 'up_to_date') return
    if (blockedBy !== undefined) addTo(this.#blocked, blockedBy, name)
    for (const warning of warnings) out.warn(warning)
    const json = rowJson(result)
    this.#rows.push(json)
    if (out.mode.json) out.json(json)
    else
      for (const { file } of outputsOf(made)) {
        const path = resolve(this.#batch.manifest.folder, file)
        out.line(printable(relative('.', path) || file))
      }
    if (error !== undefined) this.#printError(result, error)
  }

  #printError({ step, key }: RowResult, error: RushesError): void {
    const { out } = this.#ctx
    const { name, at } = step.entry
    const isFirst = this.#errors.add(error, error.runId === undefined ? name : `${name} (${error.runId})`)
    const place = [`line ${at.line}`, ...(key === undefined ? [] : [key])].join(', ')
    if (isFirst || out.mode.json) out.error(error.with({ message: `${name} (${place}): ${error.message}` }))
    if (this.#annotations++ >= MAX_LINE_ANNOTATIONS) return
    const { path } = this.#batch.manifest
    annotate(this.#ctx, { title: name, message: error.message, at: { path, line: at.line } })
  }

  /** Of the runs that were created. */
  get estimate(): CostEstimate {
    const { plan, options } = this.#batch
    return options.limit.prices.sum(
      plan.steps.filter(({ entry }) => this.sent.has(entry.name)).map(pricedRun),
    )
  }

  /** The runs that the batch has left, with the names of their rows: those that have succeeded, or those that have not ended. */
  left(hasSucceeded: boolean): readonly string[] {
    return this.#batch.plan.steps.flatMap(({ entry: { name } }) => {
      const { result, run, isSucceeded = false } = this.#results.get(name) ?? {}
      const isLeft = result === 'still_running' && isSucceeded === hasSucceeded
      return isLeft && run !== undefined ? [`${name} (${run})`] : []
    })
  }

  /** Prints the summary. Returns each error that affects the exit code, and the number of rows that were not started. */
  async end(plan: Plan): Promise<{ readonly errors: readonly RushesError[]; readonly notStarted: number }> {
    const { out, globals, clock } = this.#ctx
    const { manifest, options } = this.#batch
    const { estimate } = this
    for (const step of plan.steps)
      if (step.action.do === 'unconfirmed' || step.action.do === 'blocked') this.row(inactiveResult(step))
    if (!out.mode.json) for (const error of this.#errors.repeated()) out.error(error)
    for (const [source, names] of this.#blocked) out.note(blockedNote(source, names))
    const states = new Map<string, OpenState>()
    for (const { action, entry } of activeSteps(plan)) {
      if (this.#results.has(entry.name)) continue
      const exists = action.do === 'download' || this.sent.has(entry.name)
      states.set(entry.name, exists ? 'still_running' : 'not_started')
    }
    const counts = this.#count(plan, [...states.values()])
    const elapsedMs = clock.monotonic() - this.#startedAtMs
    const summary = {
      ...counts,
      elapsed_ms: Math.round(elapsedMs),
      ...estimateJson(estimate),
      not_waited_for: leftRunsJson(plan),
    }
    if (out.mode.json) out.json({ summary })
    await writeReport(this.#ctx, options.flags.report, { runs: this.#rows, summary })
    const line = summaryLine(counts, globals.local)
    // The plan has said why local runs are free.
    const cost = estimateNote(estimate, { local: false })
    out.note(`${line} (${formatDuration(elapsedMs)})${cost}`)
    const rows = openSteps(plan).map((step) => {
      const { name } = step.entry
      return shownCells(step, this.#results.get(name), states.get(name))
    })
    writeJobSummary(this.#ctx, { manifest, line: `${line}${cost}`, rows })
    const errors = [...this.#results.values()].flatMap(({ error }) => error ?? [])
    return { errors, notStarted: counts.not_started }
  }

  /** `open`: the states of the rows without a result. */
  #count({ counts }: Plan, open: readonly OpenState[]): Tally {
    const tally: Tally = {
      total: counts.total,
      created: 0,
      downloaded: 0,
      moved: 0,
      up_to_date: counts.up_to_date,
      failed: 0,
      blocked: 0,
      unconfirmed: 0,
      still_running: 0,
      not_started: 0,
      skipped: counts.skip,
    }
    for (const { result } of this.#results.values()) tally[result]++
    for (const state of open) tally[state]++
    return tally
  }
}

type OpenState = 'still_running' | 'not_started'
type Tally = Record<RowResult['result'] | 'not_started' | 'total' | 'skipped', number>

/**
 * `5 runs: 2 created, 3 up to date`. Under `--local`, runs are not called running: most are rendered only while a command
 * waits.
 */
function summaryLine({ total, ...counts }: Tally, isLocal: boolean): string {
  const parts = Object.entries(counts).flatMap(([name, count]) => {
    const words = isLocal && name === 'still_running' ? 'unfinished' : name.replaceAll('_', ' ')
    return count === 0 ? [] : [`${count} ${words}`]
  })
  return `${plural(total, 'run')}: ${parts.join(', ') || 'nothing to do'}`
}

const blockedNote = (source: string, names: readonly string[]): string =>
  `not created, because ${names.length === 1 ? 'it needs' : 'they need'} the output of ${source}: ${listNames(names)}`

function reasonOf(action: RowAction): string {
  switch (action.do) {
    case 'up_to_date':
    case 'skip':
      return ''
    case 'unconfirmed':
      return action.key ?? ''
    case 'create':
      return action.why === 'out_of_date' ? 'model or input changed' : action.why
    default:
      return action.why
  }
}

/**
 * Returns the cells of a row, in the words of the JSON form: its planned action or its result, name, file, and the reason
 * or the error. `open`: state of a row without a result.
 */
export function cellsOf(step: PlanStep, row?: RowResult, open?: string): readonly string[] {
  const { entry, file, action } = step
  const error = row?.error && [row.run, row.error.message].filter(Boolean).join(': ')
  const needs = row?.blockedBy && `needs ${row.blockedBy}`
  const state = row?.result ?? open ?? action.do
  return [state, entry.name, row?.made?.file ?? file, error ?? needs ?? reasonOf(action)].map(printable)
}

const USUAL_EXTENSIONS: Readonly<Record<Kind, string>> = { image: '.png', video: '.mp4' }

/** Returns the cells for a person: a file whose extension is not known yet has the usual one of its kind. */
function shownCells(step: PlanStep, row?: RowResult, open?: string): readonly string[] {
  const file = step.file.replace(OPEN, USUAL_EXTENSIONS[step.entry.kind])
  return cellsOf({ ...step, file }, row, open)
}

/** All keys are always present. Unknown values are null. */
const stepJson = ({ entry, model, hash, file, action, sources, locked, outputs }: PlanStep) => ({
  name: entry.name,
  action: action.do,
  reason: reasonOf(action) || null,
  kind: entry.kind,
  model: model ?? null,
  hash: hash ?? null,
  file,
  run: action.do === 'download' ? action.run : null,
  uses: sources,
  /** Those in the lock file. */
  outputs: outputsOf(locked).map(({ file: known, sha256, bytes }, at) => {
    const fact = outputs[at]?.fact ?? { is: 'missing' }
    const there = isInPlace(fact, sha256) ? 'in_place' : 'different'
    return {
      file: outputs[at]?.file ?? known,
      sha256,
      bytes,
      state: fact.is === 'missing' ? 'missing' : there,
    }
  }),
  line: entry.at.line,
})

/** All keys are always present. Unknown values are null. */
const rowJson = ({ step, result, made, run, error, blockedBy }: RowResult) => ({
  name: step.entry.name,
  result,
  kind: step.entry.kind,
  model: step.model ?? null,
  run: run ?? null,
  file: made?.file ?? null,
  bytes: made?.bytes ?? null,
  sha256: made?.sha256 ?? null,
  content_type: made?.content_type ?? null,
  error: error === undefined ? null : { code: error.code, message: error.message },
  blocked_by: blockedBy ?? null,
  line: step.entry.at.line,
})

const ACTION_WORDS: readonly (readonly [RowAction['do'], string])[] = [
  ['up_to_date', 'up to date'],
  ['download', 'to download'],
  ['create', 'to create'],
  ['unconfirmed', 'unconfirmed'],
  ['conflict', 'with a conflicting file'],
  ['blocked', 'blocked'],
  ['skip', 'skipped'],
]

/** `5 runs: 3 up to date, 2 to create. Estimate: 3 credits` */
export function planLine({ globals }: Context, plan: Plan, prices: Prices): string {
  const { counts } = plan
  const parts = ACTION_WORDS.filter(([action]) => counts[action] > 0).map(
    ([action, words]) => `${counts[action]} ${words}`,
  )
  const runs = [plural(counts.total, 'run'), parts.join(', ')].filter(Boolean).join(': ')
  return `${runs}${estimateNote(sumPlan(plan, prices), globals)}`
}

/** Returns the end of a summary line: `. Estimate: 4.8 USD (2 runs without a price)`. Empty without runs. */
function estimateNote(
  { runs, millionths, withoutPrice, currency }: CostEstimate,
  { local }: { readonly local: boolean },
): string {
  if (runs === 0) return ''
  const unpriced = withoutPrice === 0 ? '' : `${plural(withoutPrice, 'run')} without a price`
  if (runs === withoutPrice) return `. No estimate: ${unpriced}`
  const isFree = local && millionths === 0 && withoutPrice === 0
  const more = isFree ? ', because local runs are free' : unpriced && ` (${unpriced})`
  return `. Estimate: ${amountText(millionths, currency)}${more}`
}

/** Keys of the summaries. Null without a price: for a model, and for all runs together. */
const estimateJson = ({ runs, millionths, withoutPrice, currency, byModel }: CostEstimate) => ({
  estimate: runs > 0 && runs === withoutPrice ? null : amountOf(millionths),
  currency,
  without_price: withoutPrice,
  estimates: Object.fromEntries(
    [...byModel].map(([model, sum]) => [model, sum.withoutPrice > 0 ? null : amountOf(sum.millionths)]),
  ),
})

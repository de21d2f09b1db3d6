/** Prints a plan, or the results of a batch: a line for each row, notes, a summary, and the reports for CI. */
import { relative, resolve } from 'node:path'
import { outputsOf } from '../../batch/lock/lock.js'
import { activeSteps, type LeftRun, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { inactiveResult, type RowResult } from '../../batch/results/rows.js'
import type { RushesError } from '../../errors.js'
import { addTo } from '../../protocol/lists.js'
import { listNames, printable } from '../../protocol/text.js'
import { formatDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import type { CostEstimate } from '../models/prices.js'
import { ErrorGroups } from '../runs/error-groups.js'
import { resumeCommand } from '../runs/resume.js'
import { plural } from '../terminal/format.js'
import { printTable } from '../terminal/table.js'
import { annotate, MAX_LINE_ANNOTATIONS, writeJobSummary, writeReport } from './ci-reports.js'
import type { PreparedBatch } from './prepare.js'
import {
  cellsOf,
  estimateJson,
  estimateNote,
  planLine,
  rowJson,
  shownCells,
  stepJson,
  sumPlan,
} from './row-text.js'

export async function printPlan(ctx: Context, prepared: PreparedBatch): Promise<void> {
  const { out } = ctx
  const { plan, options } = prepared
  reportPlan(ctx, prepared, out.mode.json)
  const cells = out.stdoutIsTerminal ? shownCells : cellsOf
  const rows = selectedSteps(plan).map((step) => cells(step))
  if (!out.mode.json) await printTable(out, [], rows)
  printNotes(ctx, plan)
  out.note(planLine(ctx, plan, options.limit.prices))
}

/** Writes the plan to the `--report` file and to the job summary. `prints`: whether it is also printed, as lines of JSON. */
export function reportPlan(ctx: Context, prepared: PreparedBatch, prints: boolean): void {
  const { plan, manifest, flags, options } = prepared
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
  if (options.mode !== 'dry run') writeReport(ctx, flags.report, { runs, summary })
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

const selectedSteps = ({ steps }: Plan): readonly PlanStep[] =>
  steps.filter(({ action }) => action.do !== 'skip')

/** The selected rows that are not up to date. */
const openSteps = (plan: Plan): readonly PlanStep[] =>
  selectedSteps(plan).filter(({ action }) => action.do !== 'up_to_date')

/** Maximum number of warnings: one screen. `--json` has all runs. */
const MAX_SHOWN = 20

const WHY: Readonly<Record<LeftRun['why'], string>> = {
  changed: 'the manifest has changed since',
  waiting: 'files that it uses are still to come',
  forced: '--force creates it again',
  removed: 'the manifest no longer has it',
}

/** Prints what the rows do not show, and warns about runs that no row uses: they may be paid for. */
export function printNotes({ out, globals }: Context, { renamed, leftover, left }: Plan): void {
  for (const { from, to } of renamed) out.note(`"${from}" was renamed to "${to}" (same model and input)`)
  if (leftover.length > 0) {
    const names = leftover.map(({ name, file }) => `${name} (${file})`)
    out.note(`no longer in the manifest, kept in the lock file while the file exists: ${names.join(', ')}`)
  }
  for (const { flight, why } of left.slice(0, MAX_SHOWN)) {
    const { name, run, key } = flight
    if (run === undefined)
      out.warn(
        `${name}: the outcome of an earlier create${key === undefined ? '' : ` (${key})`} is unknown, and ${WHY[why]}. ` +
          'A run may exist that nothing waits for: check the runs of your account.',
      )
    else
      out.warn(
        `${name}: ${run} has not been downloaded, and ${WHY[why]}. This batch does not wait for it` +
          `${why === 'waiting' ? ' unless they have the same bytes as before' : ''}. ` +
          `To get its result: ${resumeCommand(globals, 'wait', [run], ['-d'])}`,
      )
  }
  const more = left.length - MAX_SHOWN
  if (more > 0) out.warn(`${more} more runs are not waited for. --json names them all.`)
}

/** All keys are always present. Unknown values are null. */
const leftRunsJson = ({ left }: Plan) =>
  left.map(({ flight: { name, run, key }, why }) => ({ name, run: run ?? null, key: key ?? null, why }))

/** Collects and prints the results of the rows. */
export class Report {
  readonly #ctx: Context
  readonly #prepared: PreparedBatch
  readonly #startedAtMs: number
  readonly #results = new Map<string, RowResult>()
  /** The objects of the rows that were printed. */
  readonly #rows: unknown[] = []
  readonly #errors = new ErrorGroups()
  /** Names of the blocked rows, for each row that blocks others. */
  readonly #blocked = new Map<string, string[]>()
  #annotations = 0

  constructor(ctx: Context, prepared: PreparedBatch) {
    this.#ctx = ctx
    this.#prepared = prepared
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
        const path = resolve(this.#prepared.manifest.folder, file)
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
    const { path } = this.#prepared.manifest
    annotate(this.#ctx, { title: name, message: error.message, at: { path, line: at.line } })
  }

  /**
   * Prints the summary. Returns each error that affects the exit code, and the number of rows that were not started.
   * `exists`: whether the row of this name has a run. `estimate`: of the runs that were created.
   */
  end(
    plan: Plan,
    exists: (name: string) => boolean,
    estimate: CostEstimate,
  ): { readonly errors: readonly RushesError[]; readonly notStarted: number } {
    const { out, globals, clock } = this.#ctx
    const { manifest, flags } = this.#prepared
    for (const step of plan.steps)
      if (step.action.do === 'unconfirmed' || step.action.do === 'blocked') this.row(inactiveResult(step))
    if (!out.mode.json) for (const error of this.#errors.repeated()) out.error(error)
    for (const [source, names] of this.#blocked) out.note(blockedNote(source, names))
    const open = activeSteps(plan).filter(({ entry }) => !this.#results.has(entry.name))
    const states = new Map(
      open.map(({ entry: { name } }) => [name, exists(name) ? ('still_running' as const) : 'not_started']),
    )
    const counts = this.#count(plan, [...states.values()])
    const elapsedMs = clock.monotonic() - this.#startedAtMs
    const summary = {
      ...counts,
      elapsed_ms: Math.round(elapsedMs),
      ...estimateJson(estimate),
      not_waited_for: leftRunsJson(plan),
    }
    if (out.mode.json) out.json({ summary })
    writeReport(this.#ctx, flags.report, { runs: this.#rows, summary })
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
  #count({ counts }: Plan, open: readonly string[]): Tally {
    const states = [...this.#results.values()].map(({ result }): string => result).concat(open)
    const count = (wanted: string) => states.filter((state) => state === wanted).length
    return {
      total: counts.total,
      created: count('created'),
      downloaded: count('downloaded'),
      moved: count('moved'),
      up_to_date: counts.up_to_date + count('up_to_date'),
      failed: count('failed'),
      blocked: count('blocked'),
      unconfirmed: count('unconfirmed'),
      still_running: count('still_running'),
      not_started: count('not_started'),
      skipped: counts.skip,
    }
  }
}

type Tally = Readonly<
  Record<RowResult['result'] | 'total' | 'still_running' | 'not_started' | 'skipped', number>
>

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
  `not created, because ${names.length === 1 ? 'it needs' : 'they need'} the output of ${printable(source)}: ${listNames(names)}`

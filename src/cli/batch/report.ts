/**
 * Prints the output of a batch: a path or an object for each row as it ends, a summary, and annotations for GitHub
 * Actions.
 */
import { relative, resolve } from 'node:path'
import { outputsOf } from '../../batch/lock/lock.js'
import { activeSteps, type Plan } from '../../batch/plan/index.js'
import { inactiveResult, type RowResult } from '../../batch/results/rows.js'
import type { RushesError } from '../../errors.js'
import { addTo } from '../../protocol/lists.js'
import { listNames, printable } from '../../protocol/text.js'
import { formatDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import type { CostEstimate } from '../models/prices.js'
import { ErrorGroups } from '../runs/error-groups.js'
import { plural } from '../terminal/format.js'
import { annotate, MAX_LINE_ANNOTATIONS, resultRow, writeJobSummary, writeReport } from './ci-reports.js'
import { estimateJson, estimateNote, leftRunsJson } from './plan-text.js'
import type { PreparedBatch } from './prepare.js'
import { openSteps } from './print-plan.js'

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
    const stillRunning = open.filter(({ entry }) => exists(entry.name)).length
    const counts = this.#count(plan, stillRunning, open.length - stillRunning)
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
    const running = globals.local ? 'queued' : 'still running'
    const rows = openSteps(plan).map((step) => {
      const { name } = step.entry
      return resultRow(step, this.#results.get(name), exists(name) ? running : 'not started')
    })
    writeJobSummary(this.#ctx, { manifest, line: `${line}${cost}`, rows })
    const errors = [...this.#results.values()].flatMap(({ error }) => error ?? [])
    return { errors, notStarted: counts.not_started }
  }

  #count({ counts }: Plan, stillRunning: number, notStarted: number): Tally {
    const results = [...this.#results.values()]
    const count = (wanted: RowResult['result']) => results.filter(({ result }) => result === wanted).length
    return {
      total: counts.total,
      created: count('created'),
      downloaded: count('downloaded'),
      moved: count('moved'),
      up_to_date: counts.up_to_date + count('up_to_date'),
      failed: count('failed'),
      blocked: count('blocked'),
      unconfirmed: count('unconfirmed'),
      still_running: stillRunning,
      not_started: notStarted,
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

/** All keys are always present. Unknown values are null. */
const rowJson = ({ step, result, made, run, error, blockedBy }: RowResult) => ({
  name: step.entry.name,
  result,
  kind: step.entry.kind ?? null,
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

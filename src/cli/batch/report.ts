/**
 * Prints the output of a batch: a path or an object for each row as it ends, a summary, and annotations for GitHub
 * Actions.
 */

import { relative, resolve } from 'node:path'
import { outputsOf } from '../../batch/lock/lock.js'
import { activeSteps, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { inactiveResult, type RowResult } from '../../batch/results/rows.js'
import { RushesError } from '../../errors.js'
import { addTo } from '../../protocol/lists.js'
import { listNames, printable } from '../../protocol/text.js'
import { formatDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import type { CostEstimate } from '../models/prices.js'
import { createErrorGroups, type RepeatedError } from '../terminal/error-groups.js'
import { plural } from '../terminal/format.js'
import { annotate, MAX_LINE_ANNOTATIONS, resultRow, writeJobSummary, writeReport } from './ci-reports.js'
import { estimateJson, estimateNote } from './estimates.js'
import type { PreparedBatch } from './prepare.js'
import { leftRunsJson } from './show.js'

export interface Report {
  row(result: RowResult): void
  /**
   * Prints the summary. Returns each error that affects the exit code, and the number of rows that were not started.
   * `exists`: whether the row of this name has a run. `estimate`: of the runs that were created.
   */
  end(
    plan: Plan,
    exists: (name: string) => boolean,
    estimate: CostEstimate,
  ): { readonly errors: readonly RushesError[]; readonly notStarted: number }
}

export function createReport(ctx: Context, { manifest, flags }: PreparedBatch): Report {
  const { out, clock, globals } = ctx
  const runs: unknown[] = []
  const json = (result: RowResult): void => {
    const row = rowJson(result)
    runs.push(row)
    if (out.mode.json) out.json(row)
  }
  const startedAtMs = clock.monotonic()
  const results = new Map<string, RowResult>()
  let annotations = 0

  const groups = createErrorGroups<string>()

  function printError({ step, key }: RowResult, error: RushesError): void {
    const { name } = step.entry
    const isFirst = groups.add(error, error.runId === undefined ? name : `${name} (${error.runId})`)
    if (isFirst || out.mode.json) out.error(withRowName(step, key, error))
    if (annotations++ < MAX_LINE_ANNOTATIONS)
      annotate(ctx, {
        title: step.entry.name,
        message: error.message,
        at: { path: manifest.path, line: step.entry.at.line },
      })
  }

  /** Names of the blocked rows, for each row that blocks others. */
  const blocked = new Map<string, string[]>()

  function printRow(result: RowResult): void {
    const { step, made, error, blockedBy, warnings = [] } = result
    results.set(step.entry.name, result)
    // Not printed, like rows that were up to date from the start.
    if (result.result === 'up_to_date') return
    if (blockedBy !== undefined) addTo(blocked, blockedBy, step.entry.name)
    for (const warning of warnings) out.warn(warning)
    json(result)
    if (!out.mode.json)
      for (const { file } of outputsOf(made)) out.line(printable(displayPath(manifest.folder, file)))
    if (error !== undefined) printError(result, error)
  }

  return {
    row: printRow,
    end(plan, exists, estimate) {
      for (const step of plan.steps)
        if (step.action.do === 'unconfirmed' || step.action.do === 'blocked') printRow(inactiveResult(step))
      if (!out.mode.json) for (const repeated of groups.repeated()) out.error(repeatedError(repeated))
      for (const [source, names] of blocked) out.note(blockedNote(source, names))
      const open = activeSteps(plan).filter(({ entry }) => !results.has(entry.name))
      const stillRunning = open.filter(({ entry }) => exists(entry.name)).length
      const counts = countRows(plan, results, { open: open.length, stillRunning })
      const elapsedMs = clock.monotonic() - startedAtMs
      const summary = {
        ...counts,
        elapsed_ms: Math.round(elapsedMs),
        ...estimateJson(estimate),
        not_waited_for: leftRunsJson(plan),
      }
      if (out.mode.json) out.json({ summary })
      writeReport(ctx, flags.report, { runs, summary })
      const line = summaryLine(counts, globals.local)
      // The plan has said why local runs are free.
      const cost = estimateNote(estimate, { local: false })
      out.note(`${line} (${formatDuration(elapsedMs)})${cost}`)
      const openState = ({ entry: { name } }: PlanStep): string => {
        if (!exists(name)) return 'not started'
        return globals.local ? 'queued' : 'still running'
      }
      writeJobSummary(ctx, {
        manifest,
        line: `${line}${cost}`,
        hasResults: true,
        rows: plan.steps
          .filter(({ action }) => action.do !== 'skip')
          .map((step) => resultRow(step, results.get(step.entry.name), openState(step))),
      })
      const errors = [...results.values()].flatMap(({ error }) => error ?? [])
      return { errors, notStarted: counts.not_started }
    },
  }
}

type Tally = Readonly<Record<'total' | (typeof WORDS)[number][0], number>>

const WORDS = [
  ['created', 'created'],
  ['downloaded', 'downloaded'],
  ['moved', 'moved'],
  ['up_to_date', 'up to date'],
  ['failed', 'failed'],
  ['blocked', 'blocked'],
  ['unconfirmed', 'unconfirmed'],
  ['still_running', 'still running'],
  ['not_started', 'not started'],
  ['skipped', 'skipped'],
] as const

/** `open`: number of rows without a result. */
function countRows(
  { counts }: Plan,
  results: ReadonlyMap<string, RowResult>,
  { open, stillRunning }: { readonly open: number; readonly stillRunning: number },
): Tally {
  const count = (result: RowResult['result']) =>
    [...results.values()].filter((each) => each.result === result).length
  return {
    total: counts.total,
    up_to_date: counts.up_to_date + count('up_to_date'),
    created: count('created'),
    downloaded: count('downloaded'),
    moved: count('moved'),
    failed: count('failed'),
    blocked: count('blocked'),
    unconfirmed: count('unconfirmed'),
    still_running: stillRunning,
    not_started: open - stillRunning,
    skipped: counts.skip,
  }
}

/**
 * `5 runs: 2 created, 3 up to date`. Under `--local`, runs are not called running: most are rendered only while a command
 * waits.
 */
function summaryLine(counts: Tally, isLocal: boolean): string {
  const parts = WORDS.flatMap(([name, word]) =>
    counts[name] === 0
      ? []
      : [`${counts[name]} ${isLocal && name === 'still_running' ? 'unfinished' : word}`],
  )
  return `${plural(counts.total, 'run')}: ${parts.join(', ') || 'nothing to do'}`
}

const blockedNote = (source: string, names: readonly string[]): string =>
  `not created, because ${names.length === 1 ? 'it needs' : 'they need'} the output of ${printable(source)}: ${listNames(names)}`

function repeatedError({ error: { code, exitCode }, more }: RepeatedError<string>): RushesError {
  const names = listNames(more.map(({ label }) => label))
  return new RushesError(code, `${plural(more.length, 'more run')} with the same error: ${names}.`, {
    exitCode,
  })
}

const displayPath = (folder: string, file: string): string => relative('.', resolve(folder, file)) || file

function withRowName({ entry }: PlanStep, key: string | undefined, error: RushesError): RushesError {
  const place = [`line ${entry.at.line}`, ...(key === undefined ? [] : [key])].join(', ')
  return error.with({ message: `${entry.name} (${place}): ${error.message}` })
}

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

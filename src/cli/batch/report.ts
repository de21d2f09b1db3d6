/** The output of a batch: a path or an object for each row as it ends, a summary, and annotations for GitHub Actions. */
import { relative } from 'node:path'
import { activeSteps, LEFT_ALONE, type RowResult } from '../../batch/carry-out/index.js'
import { outputsOf } from '../../batch/lock/lock.js'
import type { Plan, Step } from '../../batch/plan/index.js'
import { RushesError, usageError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { plural } from '../terminal/plural.js'
import { annotate, MAX_LINE_ANNOTATIONS } from './annotations.js'
import { writeJobSummary } from './job-summary.js'
import { leftRunsJson } from './left-runs.js'
import type { Prepared } from './prepare.js'
import { createJsonOutput } from './report-file.js'
import { resultRow } from './summary-rows.js'

export interface Report {
  row(result: RowResult): void
  /** The summary; every error that decides the exit code. `exists`: whether there is a run for the row of this name. */
  end(plan: Plan, exists: (name: string) => boolean): readonly RushesError[]
}

export function createReport(ctx: Context, { manifest, flags }: Prepared): Report {
  const { out, clock, globals } = ctx
  const json = createJsonOutput(ctx, flags.report)
  const startedAtMs = clock.monotonic()
  const results = new Map<string, RowResult>()
  let annotations = 0

  /** Rows with an error that was printed before, by that error. */
  const repeated = new Map<string, { readonly error: RushesError; readonly names: string[] }>()

  function complain(step: Step, error: RushesError): void {
    const key = JSON.stringify([error.code, error.message, error.hint])
    const same = repeated.get(key)?.names
    if (same === undefined) repeated.set(key, { error, names: [] })
    if (same === undefined || out.mode.json) out.error(about(step, error))
    else same.push(error.runId === undefined ? step.entry.name : `${step.entry.name} (${error.runId})`)
    if (annotations++ < MAX_LINE_ANNOTATIONS)
      annotate(ctx, {
        title: step.entry.name,
        message: error.message,
        at: { path: manifest.path, line: step.entry.at.line },
      })
  }

  /** Rows that a row keeps back, by its name. */
  const blocked = new Map<string, string[]>()
  function block(source: string, { entry }: Step): void {
    const names = blocked.get(source)
    if (names === undefined) blocked.set(source, [entry.name])
    else names.push(entry.name)
  }

  /** The errors of references that cannot be used; a row that another one blocks has none of its own. */
  function complainOfBlocked({ steps }: Plan): readonly RushesError[] {
    return steps.flatMap((step) => {
      if (step.action.do !== 'blocked') return []
      const { by, why } = step.action
      const error = by === undefined ? usageError(`${why}.`) : undefined
      json(rowJson({ step, result: 'blocked', error, blockedBy: by }))
      if (by !== undefined) block(by, step)
      if (error === undefined) return []
      complain(step, error)
      return [error]
    })
  }

  return {
    row(result) {
      const { step, made, error, blockedBy, warnings = [] } = result
      results.set(step.entry.name, result)
      // Nothing was done for it: as for the rows that were up to date from the start, nothing is printed.
      if (result.result === 'up_to_date') return
      if (blockedBy !== undefined) block(blockedBy, step)
      for (const warning of warnings) out.warn(warning)
      json(rowJson(result))
      if (!out.mode.json)
        for (const { file } of outputsOf(made)) out.line(printable(shown(manifest.folder, file)))
      if (error !== undefined) complain(step, error)
    },
    end(plan, exists) {
      const left = plan.steps.filter(({ action }) => action.do === 'unconfirmed')
      for (const step of left) complain(step, LEFT_ALONE)
      const unusable = complainOfBlocked(plan)
      for (const { error, names } of repeated.values())
        if (names.length > 0) out.error(sameError(error, names))
      for (const [source, names] of blocked) out.note(blockedNote(source, names))
      const open = activeSteps(plan).filter(({ entry }) => !results.has(entry.name))
      const stillRunning = open.filter(({ entry }) => exists(entry.name)).length
      const of = (result: RowResult['result']) =>
        [...results.values()].filter((each) => each.result === result).length
      const counts = {
        total: plan.counts.total,
        up_to_date: plan.counts.up_to_date + of('up_to_date'),
        created: of('created'),
        downloaded: of('downloaded'),
        failed: of('failed'),
        blocked: of('blocked') + plan.counts.blocked,
        unconfirmed: of('unconfirmed') + left.length,
        still_running: stillRunning,
        not_started: open.length - stillRunning,
        skipped: plan.counts.skip,
      }
      const elapsedMs = clock.monotonic() - startedAtMs
      json({
        summary: { ...counts, elapsed_ms: Math.round(elapsedMs), not_waited_for: leftRunsJson(plan) },
      })
      out.note(`${said(counts, globals.local)} (${formatDuration(elapsedMs)})`)
      const openState = ({ entry: { name } }: Step): string => {
        if (!exists(name)) return 'not started'
        return globals.local ? 'queued' : 'still running'
      }
      writeJobSummary(ctx, {
        manifest,
        line: said(counts, globals.local),
        hasResults: true,
        rows: plan.steps
          .filter(({ action }) => action.do !== 'skip')
          .map((step) => resultRow(step, results.get(step.entry.name), openState(step))),
      })
      return [
        ...[...results.values()].flatMap(({ error }) => (error === undefined ? [] : [error])),
        ...left.map(() => LEFT_ALONE),
        ...unusable,
      ]
    },
  }
}

type Tally = Readonly<Record<'total' | (typeof WORDS)[number][0], number>>

const WORDS = [
  ['created', 'created'],
  ['downloaded', 'downloaded'],
  ['up_to_date', 'up to date'],
  ['failed', 'failed'],
  ['blocked', 'blocked'],
  ['unconfirmed', 'unconfirmed'],
  ['still_running', 'still running'],
  ['not_started', 'not started'],
  ['skipped', 'skipped'],
] as const

/** `5 runs: 2 created, 3 up to date`. A local run is rendered only while a command waits for it. */
function said(counts: Tally, isLocal: boolean): string {
  const parts = WORDS.flatMap(([name, word]) =>
    counts[name] === 0 ? [] : [`${counts[name]} ${isLocal && name === 'still_running' ? 'queued' : word}`],
  )
  return `${plural(counts.total, 'run')}: ${parts.join(', ') || 'nothing to do'}`
}

const MAX_NAMES = 10

function someOf(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  return `${names.slice(0, MAX_NAMES).map(printable).join(', ')}${more}`
}

const blockedNote = (source: string, names: readonly string[]): string =>
  `not created, because ${names.length === 1 ? 'it needs' : 'they need'} the output of ${printable(source)}: ${someOf(names)}`

function sameError({ code, exitCode }: RushesError, names: readonly string[]): RushesError {
  return new RushesError(code, `${plural(names.length, 'more row')} with the same error: ${someOf(names)}.`, {
    exitCode,
  })
}

const shown = (folder: string, file: string): string => relative('.', `${folder}/${file}`) || file

function about({ entry, action }: Step, error: RushesError): RushesError {
  const key = action.do === 'unconfirmed' && action.key !== undefined ? `, ${action.key}` : ''
  return error.with({ message: `${entry.name} (line ${entry.at.line}${key}): ${error.message}` })
}

/** Every key always there, unknown ones null. */
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

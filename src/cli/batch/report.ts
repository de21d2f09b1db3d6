/** The output of a batch: a path or an object for each row as it ends, a summary, and annotations for GitHub Actions. */
import { relative } from 'node:path'
import { activeSteps, type RowResult } from '../../batch/carry-out/index.js'
import type { Plan, Step } from '../../batch/plan/index.js'
import { EXIT, RushesError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { plural } from '../terminal/plural.js'
import { annotate, MAX_LINE_ANNOTATIONS } from './annotations.js'
import { type SummaryRow, writeJobSummary } from './job-summary.js'
import type { Prepared } from './prepare.js'
import { createJsonOutput } from './report-file.js'
import { stepWords } from './show.js'

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

  return {
    row(result) {
      const { step, made, error, warnings = [] } = result
      results.set(step.entry.name, result)
      for (const warning of warnings) out.warn(warning)
      json(rowJson(result))
      if (!out.mode.json && made !== undefined) out.line(printable(shown(manifest.folder, made.file)))
      if (error !== undefined) complain(step, error)
    },
    end(plan, exists) {
      const left = plan.steps.filter(({ action }) => action.do === 'unconfirmed')
      for (const step of left) complain(step, LEFT_ALONE)
      for (const { error, names } of repeated.values())
        if (names.length > 0) out.error(sameError(error, names))
      const open = activeSteps(plan).filter(({ entry }) => !results.has(entry.name))
      const stillRunning = open.filter(({ entry }) => exists(entry.name)).length
      const of = (result: RowResult['result']) =>
        [...results.values()].filter((each) => each.result === result).length
      const counts = {
        total: plan.counts.total,
        up_to_date: plan.counts.up_to_date,
        created: of('created'),
        downloaded: of('downloaded'),
        failed: of('failed'),
        unconfirmed: of('unconfirmed') + left.length,
        still_running: stillRunning,
        not_started: open.length - stillRunning,
        skipped: plan.counts.skip,
      }
      const elapsedMs = clock.monotonic() - startedAtMs
      json({ summary: { ...counts, elapsed_ms: Math.round(elapsedMs) } })
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
          .map((step) => summaryRow(step, results.get(step.entry.name), openState(step))),
      })
      return [
        ...[...results.values()].flatMap(({ error }) => (error === undefined ? [] : [error])),
        ...left.map(() => LEFT_ALONE),
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

function sameError({ code, exitCode }: RushesError, names: readonly string[]): RushesError {
  const shown = names.slice(0, MAX_NAMES).join(', ')
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  return new RushesError(code, `${plural(names.length, 'more row')} with the same error: ${shown}${more}.`, {
    exitCode,
  })
}

const shown = (folder: string, file: string): string => relative('.', `${folder}/${file}`) || file

function about({ entry, action }: Step, error: RushesError): RushesError {
  const key = action.do === 'unconfirmed' && action.key !== undefined ? `, ${action.key}` : ''
  return error.with({ message: `${entry.name} (line ${entry.at.line}${key}): ${error.message}` })
}

/** The same for each row, so that it is printed once. */
const LEFT_ALONE = new RushesError(
  'submission_unknown',
  'The outcome of its last create is unknown, so it was not sent again. A run may exist and cost money.',
  {
    exitCode: EXIT.outcomeUnknown,
    hint: 'Check the runs of your account first. If the run does not exist, send it again with --resubmit-unconfirmed.',
  },
)

/** Every key always there, unknown ones null. */
const rowJson = ({ step, result, made, run, error }: RowResult) => ({
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
  line: step.entry.at.line,
})

/** `open`: the state of a row that is neither up to date nor finished. */
function summaryRow(
  step: Step,
  { result, run, made, error }: Partial<RowResult> = {},
  open: string,
): SummaryRow {
  const isActive = step.action.do === 'create' || step.action.do === 'download'
  const state = result ?? (isActive ? open : step.action.do.replaceAll('_', ' '))
  const [action = '', name = '', file = '', reason = ''] = stepWords(step)
  const message = error?.message ?? (step.action.do === 'unconfirmed' ? LEFT_ALONE.message : '')
  return {
    cells: [name, action, reason, made?.file ?? file, state, run ?? '', message],
    state,
    importance: importanceOf(state, message),
    file: made?.file ?? (step.action.do === 'up_to_date' ? step.file : undefined),
  }
}

function importanceOf(state: string, message: string): SummaryRow['importance'] {
  if (message !== '') return 'failed'
  return state === 'up to date' ? 'up to date' : 'active'
}

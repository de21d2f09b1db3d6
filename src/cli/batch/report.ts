/** The output of a batch: a path or an object for each row as it ends, a summary, and annotations for GitHub Actions. */
import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { RowResult } from '../../batch/carry-out/index.js'
import type { Plan, Step } from '../../batch/plan/index.js'
import { EXIT, RushesError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { variable } from '../settings/table.js'
import { plural } from '../terminal/plural.js'
import type { Prepared } from './prepare.js'

export interface Report {
  row(result: RowResult): void
  /** The summary; every error that decides the exit code. `exists`: whether there is a run for the row of this name. */
  end(plan: Plan, exists: (name: string) => boolean): readonly RushesError[]
}

export function createReport(ctx: Context, { manifest }: Prepared): Report {
  const { out, clock, env, stderr } = ctx
  const startedAtMs = clock.monotonic()
  const results = new Map<string, RowResult>()
  const isActions = variable(env, 'GITHUB_ACTIONS') === 'true' && !out.mode.json

  function complain(step: Step, error: RushesError): void {
    out.error(about(step, error))
    // A workflow command of GitHub Actions: shown at the line of the manifest.
    if (isActions)
      stderr.write(
        `::error file=${escaped(manifest.path)},line=${step.entry.at.line},title=${escaped(step.entry.name)}::${escaped(error.message)}\n`,
      )
  }

  return {
    row(result) {
      const { step, made, error, warnings = [] } = result
      results.set(step.entry.name, result)
      for (const warning of warnings) out.warn(warning)
      if (out.mode.json) out.json(rowJson(result))
      else if (made !== undefined) out.line(printable(shown(manifest.folder, made.file)))
      if (error !== undefined) complain(step, error)
    },
    end(plan, exists) {
      const left = plan.steps.filter(({ action }) => action.do === 'unconfirmed')
      for (const step of left) complain(step, leftAlone(step))
      const open = plan.steps.filter(
        ({ entry, action }) => (action.do === 'make' || action.do === 'fetch') && !results.has(entry.name),
      )
      const unfinished = open.filter(({ entry }) => exists(entry.name)).length
      const of = (result: RowResult['result']) =>
        [...results.values()].filter((each) => each.result === result).length
      const counts = {
        total: plan.counts.total,
        current: plan.counts.current,
        made: of('made'),
        fetched: of('fetched'),
        failed: of('failed'),
        unconfirmed: of('unconfirmed') + left.length,
        unfinished,
        unbegun: open.length - unfinished,
        skipped: plan.counts.skip,
      }
      const elapsedMs = clock.monotonic() - startedAtMs
      if (out.mode.json) out.json({ summary: { ...counts, elapsed_ms: Math.round(elapsedMs) } })
      else out.note(`${said(counts)} (${formatDuration(elapsedMs)})`)
      if (isActions) writeSummary(env, manifest.path, counts, [...results.values()])
      return [
        ...[...results.values()].flatMap(({ error }) => (error === undefined ? [] : [error])),
        ...left.map(leftAlone),
      ]
    },
  }
}

type Tally = Readonly<Record<'total' | (typeof WORDS)[number][0], number>>

const WORDS = [
  ['made', 'made'],
  ['fetched', 'fetched'],
  ['current', 'current'],
  ['failed', 'failed'],
  ['unconfirmed', 'unconfirmed'],
  ['unfinished', 'going on'],
  ['unbegun', 'not begun'],
  ['skipped', 'left out'],
] as const

/** `5 runs: 2 made, 3 current` */
const said = (counts: Tally): string =>
  `${plural(counts.total, 'run')}: ${WORDS.flatMap(([name, word]) => (counts[name] === 0 ? [] : [`${counts[name]} ${word}`])).join(', ') || 'nothing to do'}`

const shown = (folder: string, file: string): string => relative('.', `${folder}/${file}`) || file

const about = (step: Step, error: RushesError): RushesError =>
  error.with({ message: `${step.entry.name} (line ${step.entry.at.line}): ${error.message}` })

const leftAlone = ({ action }: Step): RushesError => {
  const key = action.do === 'unconfirmed' ? action.key : undefined
  return new RushesError('submission_unknown', 'Its last create may have made a run: it is not sent again.', {
    exitCode: EXIT.outcomeUnknown,
    hint: `Look in the account first${key === undefined ? '' : ` (${key} in rushes list)`}; to send it again: --resubmit-unconfirmed.`,
  })
}

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

/** Percent signs and line ends would end a workflow command, or begin another. */
const escaped = (text: string): string =>
  printable(text)
    .replace(/%/g, '%25')
    .replace(/\r/g, '%0D')
    .replace(/\n/g, '%0A')
    .replace(/:/g, '%3A')
    .replace(/,/g, '%2C')

const cell = (text: string): string => printable(text).replace(/[|\\`]/g, '\\$&')

/** A table in the summary of the job. A batch does not fail when it cannot be written. */
function writeSummary(env: Context['env'], path: string, counts: Tally, results: readonly RowResult[]): void {
  const file = variable(env, 'GITHUB_STEP_SUMMARY')
  if (file === undefined) return
  const rows = results.map(
    ({ step, result, made, run, error }) =>
      `| ${[step.entry.name, result, made?.file ?? '', run ?? '', error?.message ?? ''].map(cell).join(' | ')} |`,
  )
  const text = [
    `### ${cell(path)}`,
    '',
    `${said(counts)}.`,
    '',
    ...(rows.length === 0 ? [] : ['| run | result | file | id | |', '|---|---|---|---|---|', ...rows]),
    '',
  ]
  try {
    appendFileSync(file, `${text.join('\n')}\n`)
  } catch {
    // The batch does not fail for it.
  }
}

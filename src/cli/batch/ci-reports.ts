/** Reports besides the normal output: the `--report` file, and annotations and the job summary in GitHub Actions. */
import { appendFileSync, lstatSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Manifest } from '../../batch/manifest/index.js'
import { isActive, type PlanStep } from '../../batch/plan/index.js'
import type { RowResult } from '../../batch/results/rows.js'
import { RushesError, usageError } from '../../errors.js'
import { isWithin } from '../../host/directories.js'
import { readBeginning } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import { printable, printableJson, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { variable } from '../process/io.js'
import { plural } from '../terminal/format.js'
import { shownCells } from './plan-text.js'

interface BatchFiles {
  readonly manifest: Manifest
  readonly lockPath: string
}

/** Beginning of every report. A later command recognizes a report by it, and may then replace the file. */
const BEGINNING = '{\n  "runs": ['

/**
 * Creates or empties the `--report` file. Throws `usage` if it cannot be written, if the batch needs the file, or if it
 * may be another file than an earlier report.
 */
export function beginReport(path: string, { manifest, lockPath }: BatchFiles): void {
  const outputs = manifest.entries.map(({ output }) => resolve(manifest.folder, output))
  if ([resolve(manifest.path), resolve(lockPath), ...outputs].includes(resolve(path)))
    throw usageError(`--report: ${path} is a file of the batch.`, 'Give the path of another file.')
  try {
    if (!canReplace(path))
      throw usageError(`--report: ${path} exists, and is not a report.`, 'Give the path of another file.')
    writeFileSync(path, '')
  } catch (error) {
    if (error instanceof RushesError) throw error
    throw usageError(`--report: cannot write ${describeError(error, path)}.`)
  }
}

/** Whether there is no file at the path, or an empty one, a device, or a report. Links are not followed. */
function canReplace(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isCharacterDevice() || found.isFIFO()) return true
  if (!found.isFile()) return false
  return found.size === 0 || readBeginning(path, BEGINNING.length).toString() === BEGINNING
}

/**
 * Writes what a batch has done, or its plan, as one JSON document. Warns if that fails: the runs are paid for. The batch
 * may have taken hours, so a file that is no report may be there by now.
 */
export function writeReport(
  { out }: Context,
  path: string | undefined,
  report: { readonly runs: readonly unknown[]; readonly summary: unknown },
): void {
  if (path === undefined) return
  try {
    if (canReplace(path)) writeFileSync(path, `${printableJson(report, 2)}\n`)
    else out.warn(`--report: ${path} is another file now, so the report was not written.`)
  } catch (error) {
    out.warn(`--report: cannot write ${describeError(error, path)}.`)
  }
}

/** GitHub shows 10 annotations per step. The last one is for the error that ends the batch. */
export const MAX_LINE_ANNOTATIONS = 9

interface Annotation {
  readonly title: string
  readonly message: string
  /** Position in the manifest. The path may be relative to the current folder. */
  readonly at?: { readonly path: string; readonly line: number }
}

/** Under `--json` standard error contains only JSON, so there are no annotations. */
const isActions = ({ env, out }: Context): boolean =>
  variable(env, 'GITHUB_ACTIONS') === 'true' && !out.mode.json

/** Prints a workflow command to standard error. GitHub shows it at the line of the manifest. */
export function annotate(ctx: Context, { title, message, at }: Annotation): void {
  if (!isActions(ctx)) return
  const properties = [
    ...(at === undefined ? [] : [`file=${property(pathInRepository(ctx, at.path) ?? at.path)}`]),
    ...(at === undefined ? [] : [`line=${at.line}`]),
    `title=${property(title)}`,
  ]
  ctx.stderr.write(`::error ${properties.join(',')}::${data(message)}\n`)
}

/** Path relative to the root of the repository, separated by `/`. Undefined for files outside of it. */
function pathInRepository({ env }: Context, path: string): string | undefined {
  const root = variable(env, 'GITHUB_WORKSPACE')
  if (root === undefined) return undefined
  const inside = relative(root, resolve(path)).replaceAll('\\', '/')
  return inside === '' || !isWithin(resolve(root), resolve(path)) ? undefined : inside
}

/** Escapes line ends, which would start another workflow command. */
const data = (text: string): string =>
  text
    .split(/\r?\n/)
    .map((line) => printable(line).replaceAll('%', '%25'))
    .join('%0A')

const property = (text: string): string => data(printable(text)).replaceAll(':', '%3A').replaceAll(',', '%2C')

/** Name, action, reason and file of a row; after a batch also result, run and error. */
export type SummaryRow = readonly string[]

export interface JobSummary {
  readonly manifest: { readonly path: string }
  /** `5 runs: 2 created, 3 up to date` */
  readonly line: string
  /** The rows that are not up to date. */
  readonly rows: readonly SummaryRow[]
}

const TITLES = ['name', 'action', 'reason', 'file', 'result', 'run', 'error']

/**
 * GitHub rejects a summary of more than 1 MiB completely. This number of rows with cells of this length stays below that,
 * with three bytes for each character.
 */
const MAX_ROWS = 150
const MAX_CELL = 300

/**
 * Writes the plan and its results as a table to the job summary. Errors are ignored: a batch does not fail because of its
 * summary.
 */
export function writeJobSummary(ctx: Context, summary: JobSummary): void {
  const file = variable(ctx.env, 'GITHUB_STEP_SUMMARY')
  if (file === undefined || !isActions(ctx)) return
  try {
    appendFileSync(file, summaryText(summary))
  } catch {
    // Errors are ignored.
  }
}

/** Returns the text of the summary, with the rows that have an error first. Pure. */
export function summaryText({ manifest, line, rows }: JobSummary): string {
  const hasError = (row: SummaryRow) => Number((row[TITLES.length - 1] ?? '') !== '')
  const sorted = rows.toSorted((one, other) => hasError(other) - hasError(one))
  const titles = TITLES.slice(0, rows[0]?.length)
  const table = [titles, titles.map(() => '---')]
  for (const row of sorted.slice(0, MAX_ROWS))
    table.push(row.map((cell) => escapeMarkdown(shortened(cell, MAX_CELL))))
  const left = rows.length - MAX_ROWS
  return [
    `### ${escapeMarkdown(manifest.path)}\n`,
    `${escapeMarkdown(line)}.\n`,
    ...(rows.length === 0 ? [] : [...table.map((cells) => `| ${cells.join(' | ')} |`), '']),
    ...(left <= 0 ? [] : [`${plural(left, 'more run is', 'more runs are')} not shown.\n`]),
    '',
  ].join('\n')
}

/** Escapes names, paths and messages, so that they contain no Markdown or HTML. */
const escapeMarkdown = (text: string): string => printable(text).replace(/[\\`*_[\]<>&|~!#]/g, '\\$&')

export function planRow(step: PlanStep): SummaryRow {
  const [action = '', ...others] = shownCells(step)
  const [name = '', file = '', reason = ''] = others
  return [name, action, reason, file]
}

/** `open`: state of a row without a result, which has not started or not finished. */
export function resultRow(step: PlanStep, row: RowResult | undefined, open: string): SummaryRow {
  const [name = '', action = '', reason = '', file = ''] = planRow(step)
  const result = row?.result ?? (isActive(step) ? open : action)
  const error = row?.error?.message ?? (row?.blockedBy === undefined ? '' : `needs ${row.blockedBy}`)
  return [name, action, reason, row?.made?.file ?? file, result, row?.run ?? '', error]
}

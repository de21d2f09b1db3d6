/** Reports besides the normal output: the `--report` file, and annotations and the job summary in GitHub Actions. */
import { appendFileSync, existsSync, lstatSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Manifest } from '../../batch/manifest/entry.js'
import { FileIndex } from '../../batch/manifest/outputs.js'
import { usageError } from '../../errors.js'
import { followLinks, isFolder, isWithin, makeFolders, reasonUnwritable } from '../../host/file-system.js'
import { writeAtomically } from '../../host/files.js'
import { describeError } from '../../host/system-error.js'
import { printable, printableJson, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { variable } from '../process/io.js'
import { plural } from '../terminal/format.js'

interface BatchFiles {
  readonly manifest: Manifest
  readonly lockPath: string
}

/** Throws `usage` if the `--report` file cannot be written, or if the batch needs it. */
export function checkReport(path: string, { manifest, lockPath }: BatchFiles): void {
  const { folder, entries } = manifest
  const realPathOf = (file: string) => followLinks(resolve(file))
  const outputs = entries.map(({ kind, output }) => ({ kind, realPath: realPathOf(resolve(folder, output)) }))
  const isOutput = new FileIndex(outputs).find({ realPath: realPathOf(path) }) !== undefined
  if (isOutput || [manifest.path, lockPath].map(realPathOf).includes(realPathOf(path)))
    throw usageError(`--report: ${path} is a file of the batch.`, 'Give the path of another file.')
  if (existsSync(path) && !isFolder(path) && !isReplaced(path)) return
  const reason = isFolder(path) ? 'it is a folder' : reasonUnwritable(dirname(path))
  if (reason !== undefined) throw usageError(`--report: cannot write ${path}: ${reason}.`)
}

/**
 * Whether the report becomes a new file. A link or a device such as /dev/stdout is written to, also in a folder
 * that takes no new files.
 */
const isReplaced = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() !== false

/** Writes what a batch has done, or its plan, as one JSON document. Warns if that fails: the runs are paid for. */
export async function writeReport(
  { out }: Context,
  path: string | undefined,
  report: { readonly runs: readonly unknown[]; readonly summary: unknown },
): Promise<void> {
  if (path === undefined) return
  const text = `${printableJson(report, 2)}\n`
  try {
    makeFolders(dirname(path))
    if (isReplaced(path)) await writeAtomically(path, text)
    else writeFileSync(path, text)
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
  const place = at && `file=${property(pathInRepository(ctx, at.path) ?? at.path)},line=${at.line},`
  ctx.stderr.write(`::error ${place ?? ''}title=${property(title)}::${data(message)}\n`)
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

export interface JobSummary {
  readonly manifest: { readonly path: string }
  /** `5 runs: 2 created, 3 up to date` */
  readonly line: string
  /** The cells of the rows that are not up to date. */
  readonly rows: readonly (readonly string[])[]
}

const TITLES = ['status', 'name', 'file', 'reason']
/** These rows come first. */
const FAILED: readonly (string | undefined)[] = ['failed', 'blocked', 'unconfirmed', 'still_running']

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

/** Returns the text of the summary, the failed rows first. Pure. */
export function summaryText({ manifest, line, rows }: JobSummary): string {
  const hasFailed = ([status]: readonly string[]) => Number(FAILED.includes(status))
  const sorted = rows.toSorted((one, other) => hasFailed(other) - hasFailed(one))
  const table = [TITLES, TITLES.map(() => '---')]
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

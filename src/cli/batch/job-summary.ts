/**
 * The job summary of GitHub Actions: the table of the plan, with the results when there are some. GitHub rejects a summary
 * of more than 1 MiB as a whole, so the table is cut, and the summary counts the rows that it leaves out.
 */
import { appendFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { printable, shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { variable } from '../settings/table.js'
import { plural } from '../terminal/plural.js'
import { isActions, pathInRepository } from './annotations.js'

export interface SummaryRow {
  /** Name, action, reason, file; then, after a batch, result, run and error. */
  readonly cells: readonly string[]
  /** Counted by it when the row is left out. */
  readonly state: string
  /** Failed rows are first, and rows that are up to date last. */
  readonly importance: 'failed' | 'active' | 'up to date'
  /** Relative to the folder of the manifest, where the file exists now. */
  readonly file?: string | undefined
}

export interface JobSummary {
  readonly manifest: { readonly path: string; readonly folder: string }
  /** `5 runs: 2 created, 3 up to date` */
  readonly line: string
  readonly hasResults: boolean
  readonly rows: readonly SummaryRow[]
}

/** A longer table is hard to read; the gallery and `--report` have all rows. */
const MAX_ROWS = 500
const MAX_BYTES = 1_000_000
const MAX_CELL = 300
/** A viewer loads each image in its full size. */
const MAX_THUMBNAILS = 30
const THUMBNAIL_WIDTH = 96
const IMAGES = ['.png', '.jpg', '.jpeg', '.webp', '.gif', '.avif']
const ORDER = ['failed', 'active', 'up to date'] as const

/** A batch does not fail when its summary cannot be written. */
export function writeJobSummary(ctx: Context, summary: JobSummary): void {
  const file = variable(ctx.env, 'GITHUB_STEP_SUMMARY')
  if (file === undefined || !isActions(ctx)) return
  const base = thumbnailsUrl(ctx)
  const urlOf = (path: string): string | undefined => {
    const inside = pathInRepository(ctx, join(summary.manifest.folder, path))
    return base === undefined || inside === undefined
      ? undefined
      : `${base}/${inside.split('/').map(encodeURIComponent).join('/')}`
  }
  try {
    const used = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    appendFileSync(file, summaryText(summary, { maxBytes: MAX_BYTES - used, urlOf }))
  } catch {
    // See above.
  }
}

function thumbnailsUrl({ env, out }: Context): string | undefined {
  const text = variable(env, 'RUSHES_THUMBNAILS_URL')
  if (text === undefined) return undefined
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return new URL(text).href.replace(/\/+$/, '')
  out.warn(`RUSHES_THUMBNAILS_URL: "${text}" is not a valid URL.`)
  return undefined
}

export interface SummaryLimits {
  readonly maxBytes: number
  /** The URL of a file below the manifest's folder; undefined when it is not published. */
  urlOf(path: string): string | undefined
}

/** Pure. Empty when not even the heading fits. */
export function summaryText(
  { manifest, line, hasResults, rows }: JobSummary,
  { maxBytes, urlOf }: SummaryLimits,
): string {
  const sorted = ORDER.flatMap((importance) => rows.filter((row) => row.importance === importance))
  const candidates = sorted.slice(0, MAX_ROWS)
  const images = thumbnailsOf(candidates, urlOf)
  const titles = ['row', 'action', 'reason', 'file', ...(hasResults ? ['result', 'run', 'error'] : [])]
  const columns = images.size > 0 ? ['', ...titles] : titles
  const head = [`### ${escapeMarkdown(manifest.path)}`, '', `${escapeMarkdown(line)}.`, '']
  const table = [tableRow(columns), tableRow(columns.map(() => '---'))]
  const room = maxBytes - bytesOf([...head, ...table]) - MAX_CELL
  const shown: string[] = []
  let used = 0
  for (const row of candidates) {
    const cells = row.cells.map((cell) => escapeMarkdown(shortened(cell, MAX_CELL)))
    const text = tableRow(images.size > 0 ? [images.get(row) ?? '', ...cells] : cells)
    used += bytesOf([text])
    if (used > room) break
    shown.push(text)
  }
  const left = sorted.slice(shown.length)
  const text = [
    ...head,
    ...(shown.length === 0 ? [] : [...table, ...shown, '']),
    ...(left.length === 0 ? [] : [`${leftOut(left)}.`, '']),
    '',
  ].join('\n')
  return Buffer.byteLength(text) > maxBytes ? '' : text
}

function thumbnailsOf(
  rows: readonly SummaryRow[],
  urlOf: SummaryLimits['urlOf'],
): ReadonlyMap<SummaryRow, string> {
  const found = rows.flatMap((row) => {
    const isImage = row.file !== undefined && IMAGES.includes(extname(row.file).toLowerCase())
    const url = isImage && row.file !== undefined ? urlOf(row.file) : undefined
    return url === undefined
      ? []
      : [[row, `<img src="${attribute(url)}" width="${THUMBNAIL_WIDTH}" alt="">`] as const]
  })
  return new Map(found.slice(0, MAX_THUMBNAILS))
}

/** `120 more rows are not shown: 20 created, 100 up to date` */
function leftOut(rows: readonly SummaryRow[]): string {
  const counts = new Map<string, number>()
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1)
  const parts = [...counts].map(([state, count]) => `${count} ${state}`).join(', ')
  return `${plural(rows.length, 'more row is', 'more rows are')} not shown: ${parts}`
}

const tableRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

const bytesOf = (lines: readonly string[]): number => Buffer.byteLength(`${lines.join('\n')}\n`)

/** Names, paths and messages are data: no Markdown and no HTML of them takes effect. */
const escapeMarkdown = (text: string): string => printable(text).replace(/[\\`*_[\]<>&|~!#]/g, '\\$&')

const attribute = (text: string): string =>
  text.replace(/[&"'<>|`]/g, (character) => `&#${character.charCodeAt(0)};`)

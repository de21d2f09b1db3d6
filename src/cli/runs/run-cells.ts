/** Formats runs as table cells for `list`, `show` and `status`. */

import type { JournalRun } from '../../journal/index.js'
import { writeJson } from '../../protocol/json.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isObject } from '../../protocol/parse.js'
import { amountText } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { formatAgo, formatSeconds } from '../terminal/format.js'
import { isOnDisk } from './journal-rows.js'

/** Returns the prompt on one line, or the whole input when it has no prompt. */
export function promptOf({ input }: JournalRun): string {
  const prompt = isObject(input) ? input.prompt : undefined
  return printable(typeof prompt === 'string' ? prompt : writeJson(input))
}

/** Cells: id or row key, status, kind, model, created_at, prompt, and the address of the service or `local`. */
export const listCells = (run: JournalRun): readonly string[] =>
  [
    run.id ?? run.key ?? '',
    run.status,
    run.kind ?? '',
    run.model,
    new Date(run.createdAtMs).toISOString(),
    promptOf(run),
    run.address,
  ].map(printable)

interface DetailsOptions {
  readonly nowMs: number
  /** Whether relative times are added, as on a terminal. */
  readonly isTerminal: boolean
  /** Returns the size of a picture that is on disk. */
  sizeOf(path: string): { readonly width: number; readonly height: number } | undefined
}

/** Label and value of a row. */
type Detail = readonly [label: string, value: string]

export function showRows(
  run: JournalRun,
  files: readonly DownloadedFile[],
  { nowMs, isTerminal, sizeOf }: DetailsOptions,
): readonly Detail[] {
  const timeOf = (ms: number): string =>
    `${new Date(ms).toISOString()}${isTerminal ? ` (${formatAgo(nowMs - ms)})` : ''}`
  const isLocal = run.address === LOCAL_ADDRESS
  const rows: (readonly [string, string | undefined])[] = [
    ['run', run.id ?? run.key],
    ['status', run.status],
    ['where', run.address],
    ['profile', isLocal ? undefined : run.profile],
    ['kind', run.kind],
    ['model', run.model],
    ['name', run.name],
    ['manifest', run.manifest],
    ...run.labels.map((label) => ['label', label] as const),
    ...inputRows(run.input),
    ['estimate', run.estimate && amountText(run.estimate.millionths, run.estimate.currency)],
    ['cost', run.charged && amountText(run.charged.millionths, run.charged.currency)],
    ['created', timeOf(run.createdAtMs)],
    ['finished', run.finishedAtMs === undefined ? undefined : timeOf(run.finishedAtMs)],
    ['elapsed', elapsedText(run)],
    ...files.map((file) => ['file', fileText(file, sizeOf)] as const),
    // The URLs of a local run stop working when the process that printed them ends.
    ...(isLocal ? [] : run.urls).map((url) => ['url', url] as const),
    ['error', run.error && `${run.error.code}: ${run.error.message}`],
    ['response', run.answer && [run.answer.status, run.answer.text].filter(Boolean).join(' ')],
  ]
  return rows.flatMap(([label, value]) =>
    value === undefined || value === '' ? [] : [[label, printable(value)] as const],
  )
}

/** From `created` to `finished`, as they are shown; the journal's own time runs to the first sight of the end. */
function elapsedText({ createdAtMs, finishedAtMs = Number.NaN, elapsedMs }: JournalRun): string | undefined {
  const shownMs = finishedAtMs >= createdAtMs ? finishedAtMs - createdAtMs : elapsedMs
  return shownMs === undefined ? undefined : formatSeconds(shownMs)
}

function inputRows(input: unknown): readonly Detail[] {
  if (!isObject(input)) return [['input', writeJson(input)]]
  return Object.entries(input).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => [name, valueText(each)] as const),
  )
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value
  if (isObject(value) && typeof value.sha256 === 'string' && typeof value.bytes === 'number')
    return `${value.content_type}, ${formatBytes(value.bytes)}, sha256 ${value.sha256}`
  return writeJson(value)
}

function fileText(file: DownloadedFile, sizeOf: DetailsOptions['sizeOf']): string {
  if (!isOnDisk(file)) return `${file.path} (moved, changed or deleted)`
  const size = file.content_type.startsWith('image/') ? sizeOf(file.path) : undefined
  const pixels = size === undefined ? [] : [`${size.width}x${size.height}`]
  return `${file.path} (${[formatBytes(file.bytes), file.content_type, ...pixels].join(', ')})`
}

/** Cells: id, status, and the URLs or files separated by spaces. */
export const statusCells = ({ id, status }: RunState, locations: readonly string[]): readonly string[] =>
  [id, status, locations.join(' ')].map(printable)

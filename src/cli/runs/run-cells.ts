/** Formats runs as cells and rows of tables, for `list`, `show` and `status`. */
import type { Journal, JournalRun } from '../../journal/index.js'
import { summaryOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import { type DownloadedFile, isSentImage } from '../../protocol/media.js'
import { isObject } from '../../protocol/parse.js'
import { amountText } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import { formatBytes, formatSeconds } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { formatAgo } from '../terminal/format.js'
import type { Style } from '../terminal/output.js'
import { printTable } from '../terminal/table.js'
import { isOnDisk, isOtherId } from './journal-rows.js'

/** Returns the prompt on one line, or the whole input when it has no prompt. */
function promptOf({ input }: JournalRun): string {
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
}

/** Label and value of a row. */
type Detail = readonly [label: string, value: string]

export function showRows(
  run: JournalRun,
  files: readonly DownloadedFile[],
  { nowMs, isTerminal }: DetailsOptions,
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
    ...files.map((file) => ['file', fileText(file)] as const),
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
  if (isSentImage(value)) return `${value.content_type}, ${formatBytes(value.bytes)}, sha256 ${value.sha256}`
  const replace = (each: unknown): unknown => {
    // Inside of an object, the journal has a file as it was sent if the name of its field does not say so.
    const file = typeof each === 'string' ? summaryOf(each) : each
    return isSentImage(file) ? valueText(file) : each
  }
  return writeJson(value, { replace })
}

const fileText = (file: DownloadedFile): string =>
  `${file.path} (${isOnDisk(file) ? `${formatBytes(file.bytes)}, ${file.content_type}` : 'moved, changed or deleted'})`

/** Cells: id, status, and the URLs or files separated by spaces. */
export const statusCells = ({ id, status }: RunState, locations: readonly string[]): readonly string[] =>
  [id, status, locations.join(' ')].map(printable)

const HEADER = ['RUN', 'STATUS', 'NAME', 'KIND', 'MODEL', 'AGE', 'WHERE', 'LABELS', 'PROMPT']
/** Shown if they fit, the most important one first. */
const OPTIONAL = ['NAME', 'WHERE', 'MODEL', 'KIND', 'LABELS']
/** Maximum width of names and labels. */
const MAX_TEXT_COLUMNS = 24

/** Prints the runs of the journal as a table for a terminal, whose widths of characters take time to load. */
export async function printRuns(ctx: Context, journal: Journal, runs: readonly JournalRun[]): Promise<void> {
  const { cutToColumns } = await import('../terminal/text-width.js')
  const { out, clock } = ctx
  const length = Math.max(...runs.map(({ id }) => (id === undefined ? 0 : uniqueLength(journal, id))))
  const cut = (text: string) => cutToColumns(printable(text), MAX_TEXT_COLUMNS)
  const hasPlaces = new Set(runs.map(({ address }) => address)).size > 1
  const rows = runs.map((run) => {
    const { id, key = '', status, kind = '', model, address, name = '', labels, createdAtMs } = run
    return [
      printable(id?.slice(0, length) ?? key),
      colourOf(run, out.style.out)(printable(status)),
      cut(name),
      kind,
      printable(model),
      formatAgo(clock.now() - createdAtMs).replace(' ago', ''),
      hasPlaces ? printable(address.replace(/^https?:\/\//, '')) : '',
      cut(labels.join(', ')),
      promptOf(run),
    ]
  })
  await printTable(out, HEADER, rows, { optional: OPTIONAL, isCut: true })
}

/** Minimum length of a shortened id: many services begin each id with a word such as `run_`. */
const MIN_SHOWN = 7

/**
 * Length at which the beginning of the id names the run, and begins no other id of the journal. Only the ids beside it can
 * share more.
 */
function uniqueLength(journal: Journal, id: string): number {
  const lengths = journal.idsBeside(id).map((other) => {
    let common = 0
    while (common < id.length && id[common] === other[common]) common++
    return common + 1
  })
  const length = Math.max(MIN_SHOWN, ...lengths)
  return isOtherId(id.slice(0, length), id) ? id.length : length
}

function colourOf({ phase }: JournalRun, style: Style): (text: string) => string {
  if (phase === 'succeeded') return style.green
  if (phase === 'failed') return style.red
  return phase === 'unconfirmed' ? style.yellow : (text) => text
}

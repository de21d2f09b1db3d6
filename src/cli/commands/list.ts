/** `rushes list` and `rushes show`: the runs created on this machine, from the journal. They send no requests. */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { summaryOf } from '../../protocol/identity.js'
import { writeJson } from '../../protocol/json.js'
import { type DownloadedFile, isSentImage } from '../../protocol/media.js'
import { safeName } from '../../protocol/output-names.js'
import { isObject } from '../../protocol/parse.js'
import { amountText } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import { formatBytes, formatSeconds, isoTime } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { SHOW } from '../flags/delivery.js'
import { createFileFinder, isOnDisk, isOtherId } from '../runs/journal-rows.js'
import { addFilterOptions, addRunId, type FilterOptions, filterOf, selectRun } from '../runs/run-selection.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { formatAgo, tabRow } from '../terminal/format.js'
import type { Style } from '../terminal/output.js'
import { listJson } from '../terminal/run-json.js'
import { printTable } from '../terminal/table.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  act(addFilterOptions(command, { limit: DEFAULTS.listLimit }), listCommand)
}

export async function listCommand(ctx: Context, options: FilterOptions): Promise<number> {
  const { out } = ctx
  const filter = await filterOf(ctx, options)
  const journal = await ctx.journal()
  const runs = journal.list(filter)
  if (out.mode.json) for (const run of runs) out.json(listJson(run, journal.filesOf(run)))
  else if (!out.stdoutIsTerminal) for (const run of runs) out.line(tabRow(listCells(run)))
  else if (runs.length === 0) out.note('No runs found.')
  else await printRuns(ctx, journal, runs)
  return EXIT.ok
}

interface ShowFlags {
  readonly last?: boolean
  readonly show?: boolean
}

export function registerShow(command: Command, { act }: CommandEnvironment): void {
  act(addRunId(command).option(...SHOW), showCommand)
}

export async function showCommand(ctx: Context, { last, show }: ShowFlags, name?: string): Promise<number> {
  const { out, clock } = ctx
  const journal = await ctx.journal()
  const run = await selectRun(ctx, name, last)
  const files = journal.filesOf(run)
  if (out.mode.json) {
    out.json(listJson(run, files))
    return EXIT.ok
  }
  const rows = showRows(run, files, { nowMs: clock.now(), isTerminal: out.stdoutIsTerminal })
  await printTable(out, [], rows)
  if (show === true) await drawFiles(ctx, run, journal)
  return EXIT.ok
}

/** Draws the files that are still there. */
async function drawFiles(ctx: Context, run: JournalRun, journal: Journal): Promise<void> {
  const { files } = createFileFinder(journal)(run)
  if (files.length === 0) return ctx.out.note('No result of this run is on this machine.')
  const { openPictures } = await import('../runs/pictures.js')
  const pictures = await openPictures(ctx)
  for (const file of files) await pictures?.draw(file)
}

/** Returns the prompt on one line, or the whole input when it has no prompt. */
function promptOf({ input }: JournalRun): string {
  const prompt = isObject(input) ? input.prompt : undefined
  return printable(typeof prompt === 'string' ? prompt : writeJson(input))
}

/** Cells: id or row key, status, kind, model, created_at, prompt, and the address of the service or `local`. */
const listCells = (run: JournalRun): readonly string[] =>
  [
    run.id ?? run.key ?? '',
    run.status,
    run.kind ?? '',
    run.model,
    isoTime(run.createdAtMs),
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

function showRows(
  run: JournalRun,
  files: readonly DownloadedFile[],
  { nowMs, isTerminal }: DetailsOptions,
): readonly Detail[] {
  const timeOf = (ms: number): string => `${isoTime(ms)}${isTerminal ? ` (${formatAgo(nowMs - ms)})` : ''}`
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

const HEADER = ['RUN', 'STATUS', 'KIND', 'MODEL', 'AGE', 'WHERE', 'FILE', 'PROMPT']
/** Shown if they fit, the most important one first. */
const OPTIONAL = ['WHERE', 'FILE', 'MODEL', 'KIND']
const MAX_FILE_COLUMNS = 24

/** Prints the runs of the journal as a table for a terminal, whose widths of characters take time to load. */
async function printRuns(ctx: Context, journal: Journal, runs: readonly JournalRun[]): Promise<void> {
  const { cutToColumns } = await import('../terminal/text-width.js')
  const { out, clock } = ctx
  // Not Math.max of all, which overflows the stack beyond 100,000 runs.
  const length = runs.reduce(
    (longest, { id }) => (id === undefined ? longest : Math.max(longest, uniqueLength(journal, id))),
    0,
  )
  const hasPlaces = new Set(runs.map(({ address }) => address)).size > 1
  const rows = runs.map((run) => {
    const { id, key = '', status, kind = '', model, address, createdAtMs } = run
    return [
      printable(id?.slice(0, length) ?? key),
      colourOf(run, out.style.out)(printable(status)),
      kind,
      printable(model),
      formatAgo(clock.now() - createdAtMs).replace(' ago', ''),
      hasPlaces ? printable(address.replace(/^https?:\/\//, '')) : '',
      cutToColumns(printable(fileOf(journal, run)), MAX_FILE_COLUMNS),
      promptOf(run),
    ]
  })
  await printTable(out, HEADER, rows, { optional: OPTIONAL, isCut: true })
}

/** The name of the first file that is still there: of one that is named by the id, only what follows it. */
function fileOf(journal: Journal, run: JournalRun): string {
  const file = journal.filesOf(run).find(isOnDisk)
  const name = file === undefined ? '' : basename(file.path)
  const id = safeName(run.id ?? '')
  return name.startsWith(id) ? `…${name.slice(id.length)}` : name
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

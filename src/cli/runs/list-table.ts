/** Prints the runs of the journal as a table for a terminal. */
import { basename } from 'node:path'
import type { Journal, JournalRun } from '../../journal/index.js'
import { safeName } from '../../protocol/output-names.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { formatAgo } from '../terminal/format.js'
import type { Style } from '../terminal/style.js'
import { printTable } from '../terminal/table.js'
import { cutToColumns } from '../terminal/text-width.js'
import { isOnDisk, isOtherId, MIN_BEGINNING } from './journal-rows.js'
import { promptOf } from './run-cells.js'

const HEADER = ['RUN', 'STATUS', 'NAME', 'KIND', 'MODEL', 'AGE', 'WHERE', 'LABELS', 'FILE', 'PROMPT']
/** Shown if they fit, the most important one first. */
const OPTIONAL = ['NAME', 'WHERE', 'FILE', 'MODEL', 'KIND', 'LABELS']
/** Maximum width of names, labels and files. */
const MAX_TEXT_COLUMNS = 24

export function printRuns(ctx: Context, journal: Journal, runs: readonly JournalRun[]): void {
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
      filesText(journal, run),
      promptOf(run),
    ]
  })
  printTable(out, HEADER, rows, { optional: OPTIONAL, isCut: true })
}

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
  const length = Math.max(MIN_BEGINNING, ...lengths)
  return isOtherId(id.slice(0, length), id) ? id.length : length
}

/** The name of the first file that is still there, and the number of the others. Not a name that is only the id. */
function filesText(journal: Journal, run: JournalRun): string {
  const names = journal
    .filesOf(run)
    .filter(isOnDisk)
    .map(({ path }) => basename(path))
  const [first, ...others] = names.filter((name) => !name.startsWith(safeName(run.id ?? '')))
  if (first === undefined) return ''
  const more = others.length === 0 ? '' : ` +${others.length}`
  return `${cutToColumns(printable(first), MAX_TEXT_COLUMNS - more.length)}${more}`
}

function colourOf({ phase }: JournalRun, style: Style): (text: string) => string {
  if (phase === 'succeeded') return style.green
  if (phase === 'failed') return style.red
  return phase === 'unconfirmed' ? style.yellow : (text) => text
}

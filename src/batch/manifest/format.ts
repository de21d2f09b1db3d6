/**
 * Parses the bytes of a manifest into nodes, and contains the CSV parser. The format is taken from the extension of the
 * file, else from its content.
 */
import { extname } from 'node:path'
import { CsvError, parse } from 'csv-parse/sync'
import { shortened } from '../../protocol/text.js'
import { parseJsonAt, parseJsonLines, parseJsonText } from './json.js'
import {
  type Field,
  type ListNode,
  type Node,
  type Position,
  positionsIn,
  type ReportProblem,
  START,
  scalar,
} from './nodes.js'
import { parseYaml } from './yaml.js'

type Format = 'yaml' | 'json' | 'json-lines' | 'csv'

/** Maximum size of a manifest. 10,000 rows with long prompts take a few MiB. */
export const MAX_BYTES = 16 * 1024 * 1024

const BY_EXTENSION: Readonly<Record<string, Format>> = {
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.json': 'json',
  '.jsonl': 'json-lines',
  '.ndjson': 'json-lines',
  '.csv': 'csv',
  '.tsv': 'csv',
}

/** Every row of CSV has one of these columns. */
const NAMES_FILE: readonly string[] = ['name', 'output']

/** Returns the format. A text without an extension that looks neither like JSON nor like CSV is YAML. Pure. */
export function formatOf(path: string, text: string): Format {
  const named = BY_EXTENSION[extname(path).toLowerCase()]
  if (named !== undefined) return named
  const beginning = text.trimStart()
  if (/^[[{]/.test(beginning)) {
    const lines = beginning.split('\n').filter((line) => line.trim() !== '')
    if (beginning.startsWith('{') && lines.length > 1 && lines.every((line) => /^\{.*\}\s*$/.test(line)))
      return 'json-lines'
    return isJson(text) ? 'json' : 'yaml'
  }
  const header = (beginning.split('\n', 1)[0] ?? '').split(/[,;\t]/).map((cell) => cell.trim())
  const isHeader = header.every((cell) => /^[\w.-]+$/.test(cell))
  return header.length > 1 && isHeader && header.some((cell) => NAMES_FILE.includes(cell)) ? 'csv' : 'yaml'
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

type Parse = (text: string, report: ReportProblem, warn: ReportProblem) => Node | undefined

const PARSERS: Readonly<Record<Format, Parse>> = {
  yaml: parseYaml,
  json: (text, report) => parseJsonText(text, report),
  'json-lines': parseJsonLines,
  csv: parseCsv,
}

/**
 * Parses a manifest. If it is invalid, reports the problems and returns undefined. Never throws. `warn`: called for text
 * that may mean something else than its author thinks.
 */
export function parseManifest(
  path: string,
  bytes: Uint8Array,
  report: ReportProblem,
  warn: ReportProblem,
): Node | undefined {
  const text = decode(bytes, report)
  if (text === undefined) return undefined
  if (text.trim() === '') {
    report(START, 'the manifest is empty')
    return undefined
  }
  return PARSERS[formatOf(path, text)](text, report, warn)
}

/** Decodes UTF-8 and removes the byte order mark that some editors write. */
function decode(bytes: Uint8Array, report: ReportProblem): string | undefined {
  if (bytes.byteLength > MAX_BYTES) {
    report(
      START,
      `the manifest is too large: ${bytes.byteLength} bytes; the limit is ${MAX_BYTES / 1024 / 1024} MiB`,
    )
    return undefined
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    report(START, 'the manifest is not valid UTF-8 text')
    return undefined
  }
}

interface CsvRecord {
  readonly record: readonly string[]
  /** Raw text of the record, including its line end and the empty lines before it. */
  readonly raw: string
}

/**
 * Parses CSV into a list of rows. The first line contains the field names. An empty cell leaves out its field. The
 * other cells are texts: the model of the row decides their types. The delimiter is a comma, or the semicolon or tab
 * that some spreadsheets write. Rows without a value are left out: a spreadsheet writes deleted rows as `,,,`.
 */
function parseCsv(written: string, report: ReportProblem): ListNode | undefined {
  // The parser drops half of a CRLF from its raw records, which would shift all positions.
  const text = written.replace(/\r\n?/g, '\n')
  const positionAt = positionsIn(text)
  const [setting] = /^sep=.$/im.exec(text.slice(0, 'sep=;\n'.length)) ?? []
  if (setting !== undefined) {
    report(
      START,
      `remove the line "${setting}": only Excel reads it, and the delimiter is detected without it`,
    )
    return undefined
  }
  const delimiter = delimiterOf(text)
  const records = readRecords(text, delimiter, report)
  const rows: Node[] = []
  const columns = new Map<string, Position>()
  let names: readonly (string | undefined)[] | undefined
  let offset = 0
  for (const { record, raw } of records) {
    const at = positionAt(offset + Math.max(0, raw.search(/[^\n]/)))
    offset += raw.length
    if (record.every((cell) => cell.trim() === '')) continue
    if (names === undefined) names = namesOf(record, at, columns, report)
    else rows.push({ type: 'fields', fields: fieldsOf(record, at, names, report), at })
  }
  return { type: 'list', items: rows, at: positionAt(0), columns }
}

/** Detects the delimiter in the header, because field names contain none of the three. */
function delimiterOf(text: string): string {
  const [header = ''] = text.trimStart().split('\n', 1)
  return [',', ';', '\t'].find((each) => header.includes(each)) ?? ','
}

function readRecords(text: string, delimiter: string, report: ReportProblem): readonly CsvRecord[] {
  try {
    return parse(text, {
      delimiter,
      raw: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
    }) as unknown as readonly CsvRecord[]
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const line = Number(error.lines) || 1
    report({ line, column: 1 }, `invalid CSV: ${error.message.replace(/ at line \d+/, '')}`)
    return []
  }
}

/**
 * Returns the field name of each column, and adds it to `columns`. Undefined for a column without a name, empty for a
 * column already reported.
 */
function namesOf(
  header: readonly string[],
  at: Position,
  columns: Map<string, Position>,
  report: ReportProblem,
): readonly (string | undefined)[] {
  return header.map((cell) => {
    const name = cell.trim()
    if (name === '') return undefined
    if (name === 'matrix' || name === 'exclude')
      report(at, `CSV has no ${name}: write the manifest in YAML or JSON`)
    else if (columns.has(name)) report(at, `the column "${name}" occurs twice`)
    else {
      columns.set(name, at)
      return name
    }
    return ''
  })
}

function fieldsOf(
  record: readonly string[],
  at: Position,
  names: readonly (string | undefined)[],
  report: ReportProblem,
): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>()
  for (const [column, cell] of record.entries()) {
    const name = names[column]
    if (cell === '' || name === '') continue
    if (name === undefined) {
      report(
        at,
        `the cell "${shortened(cell, 40)}" is in a column without a name (an extra comma, or text without quotes?)`,
      )
      continue
    }
    fields.set(name, { at, value: name === 'input' ? jsonIn(cell, at, report) : scalar(cell, at) })
  }
  return fields
}

const jsonIn = (cell: string, at: Position, report: ReportProblem): Node =>
  parseJsonAt(at, cell, report) ?? { type: 'fields', fields: new Map(), at }

/** The bytes of a manifest to nodes; the format is known by the file's extension, else by the content. */
import { extname } from 'node:path'
import { parseCsv } from './csv.js'
import { parseJsonLines, parseJsonText } from './json.js'
import type { Node } from './nodes.js'
import { type ReportProblem, START } from './position.js'
import { ROW_FIELDS } from './row-fields.js'
import { parseYaml } from './yaml.js'

export type Format = 'yaml' | 'json' | 'json-lines' | 'csv'

/** Ten thousand rows with long prompts take a few MiB. */
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

/** Pure. A text that does not look like JSON and has no CSV header is YAML. */
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
  return header.length > 1 && header.every((cell) => ROW_FIELDS.includes(cell)) ? 'csv' : 'yaml'
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const PARSERS: Readonly<Record<Format, (text: string, report: ReportProblem) => Node | undefined>> = {
  yaml: parseYaml,
  json: parseJsonText,
  'json-lines': parseJsonLines,
  csv: parseCsv,
}

/** Undefined when it cannot be read; the problem has been reported. Never throws. */
export function parseManifest(path: string, bytes: Uint8Array, report: ReportProblem): Node | undefined {
  const text = decode(bytes, report)
  if (text === undefined) return undefined
  if (text.trim() === '') {
    report(START, 'the manifest is empty')
    return undefined
  }
  return PARSERS[formatOf(path, text)](text, report)
}

/** Without a byte order mark, which some editors write. */
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

/** Bytes of a manifest to positioned values: the format by the file's name, else by what is in it. */
import { extname } from 'node:path'
import { parseCsv } from './csv.js'
import { ROW_FIELDS } from './fields.js'
import { parseJson, parseJsonLines } from './json.js'
import { type Report, START } from './position.js'
import type { Node } from './tree.js'
import { parseYaml } from './yaml.js'

export type Format = 'yaml' | 'json' | 'json-lines' | 'csv'

/** Ten thousand rows with long prompts are a few; a file beyond that is something else. */
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

/** Pure. Whatever has neither the look of JSON nor a header of CSV is YAML. */
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

const PARSERS: Readonly<Record<Format, (text: string, report: Report) => Node | undefined>> = {
  yaml: parseYaml,
  json: parseJson,
  'json-lines': parseJsonLines,
  csv: parseCsv,
}

/** Undefined when it cannot be read, which was reported then. Never throws. */
export function parseManifest(path: string, bytes: Uint8Array, report: Report): Node | undefined {
  const text = decode(bytes, report)
  if (text === undefined) return undefined
  if (text.trim() === '') {
    report(START, 'is empty')
    return undefined
  }
  return PARSERS[formatOf(path, text)](text, report)
}

/** Without the byte order mark that some editors put in front. */
function decode(bytes: Uint8Array, report: Report): string | undefined {
  if (bytes.byteLength > MAX_BYTES) {
    report(START, `has ${bytes.byteLength} bytes; a manifest has at most ${MAX_BYTES / 1024 / 1024} MiB`)
    return undefined
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    report(START, 'is not UTF-8 text')
    return undefined
  }
}

/**
 * Parses the bytes of a manifest into plain values and their lines, and collects its problems. YAML and JSON are read by
 * one parser, JSON Lines a line each, and CSV with the first line as the names of the fields.
 */
import { extname } from 'node:path'
import { CsvError, parse } from 'csv-parse/sync'
import { messageOf } from '../../errors.js'
import { InvalidText, readYaml } from '../../host/yaml.js'
import { readJson } from '../../protocol/json.js'
import { nearest, shortened } from '../../protocol/text.js'

/** Names and indexes from the root to a value. */
export type Path = readonly (string | number)[]

export interface ManifestProblem {
  /** Counted from 1. */
  readonly line: number
  readonly message: string
}

export interface ParsedManifest {
  readonly value: unknown
  /** The line of a value, or of the innermost value around it that has one. Counted from 1. */
  lineOf(path: Path): number
  /** Whether the values are texts, whose types are those of the run's model. */
  readonly isCsv: boolean
}

/** Maximum size of a manifest. 10,000 runs with long prompts take a few MiB. */
export const MAX_BYTES = 16 * 1024 * 1024

/** Returns the problem of a text that cannot be parsed. The extension of `path` is that of the format; default: YAML. */
export function parseManifest(path: string, bytes: Uint8Array): ParsedManifest | ManifestProblem {
  try {
    const text = decode(bytes)
    if (text.trim() === '') throw new InvalidText(1, 'the manifest is empty')
    const extension = extname(path).toLowerCase()
    if (extension === '.csv') return readCsv(text)
    if (['.jsonl', '.ndjson'].includes(extension)) return readJsonLines(text)
    return readYamlOrJson(text)
  } catch (error) {
    if (error instanceof InvalidText) return { line: error.line, message: error.message }
    throw error
  }
}

/** Decodes UTF-8 without the byte order mark that some editors write. */
function decode(bytes: Uint8Array): string {
  if (bytes.byteLength > MAX_BYTES)
    throw new InvalidText(
      1,
      `the manifest is too large: ${bytes.byteLength} bytes; the limit is ${MAX_BYTES / 1024 / 1024} MiB`,
    )
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw new InvalidText(1, 'the manifest is UTF-16 text: save it as UTF-8')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new InvalidText(1, 'the manifest is not valid UTF-8 text')
  }
}

function readJsonLines(text: string): ParsedManifest {
  const lines: number[] = []
  const value = text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return []
    lines.push(at + 1)
    return [jsonIn(line, at + 1)]
  })
  return { value, lineOf: ([row = 0]) => lines[Number(row)] ?? 1, isCsv: false }
}

function jsonIn(text: string, line: number): unknown {
  try {
    return readJson(text)
  } catch (error) {
    throw new InvalidText(line, `invalid JSON: ${messageOf(error)}`)
  }
}

function readYamlOrJson(text: string): ParsedManifest {
  const [document, second] = readYaml(text)
  if (second !== undefined)
    throw new InvalidText(second.line, 'a second YAML document starts here; a manifest can have only one')
  if (document === undefined || document.value === null) throw new InvalidText(1, 'the manifest is empty')
  return { value: document.value, lineOf: document.lineOf, isCsv: false }
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>
  readonly raw: string
  readonly info: { readonly lines: number }
}

function readCsv(written: string): ParsedManifest {
  const text = written.replace(/\r\n?/g, '\n')
  const lines: number[] = []
  try {
    const records = parse(text, {
      columns: columnsOf,
      info: true,
      raw: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
    }) as unknown as readonly CsvRecord[]
    const value = records.map(({ record, raw, info }) => {
      lines.push(info.lines - (raw.trim().match(/\n/g)?.length ?? 0))
      return Object.fromEntries(Object.entries(record).filter(([, cell]) => cell !== ''))
    })
    return { value, lineOf: ([row = -1]) => lines[Number(row)] ?? 1, isCsv: true }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new InvalidText(
      Number(error.lines) || 1,
      `invalid CSV: ${error.message.replace(/ (at|on) line \d+/, '')}`,
    )
  }
}

function columnsOf(header: readonly string[]): string[] {
  const names = header.map((cell) => cell.trim())
  const twice = names.find((name, at) => name !== '' && names.indexOf(name) !== at)
  if (twice !== undefined) throw new InvalidText(1, `the column "${twice}" occurs twice`)
  return names
}

/** Reports a problem of one run, or of a value below one of its fields. */
export type Report = (message: string, ...at: Path) => void

/** The problems of a manifest. Reading continues after each, so that all are reported together. */
export class Problems {
  readonly #lineOf: (path: Path) => number
  readonly #found = new Map<string, ManifestProblem>()

  constructor(lineOf: (path: Path) => number) {
    this.#lineOf = lineOf
  }

  add(path: Path, message: string): void {
    const line = this.#lineOf(path)
    this.#found.set(`${line}:${message}`, { line, message })
  }

  /** Each problem once, in the order of their lines. */
  list(): readonly ManifestProblem[] {
    return [...this.#found.values()].sort((a, b) => a.line - b.line)
  }
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  const hint = near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`
  return `${what} "${shortened(name, 100)}"${hint}`
}

/**
 * Parses the bytes of a manifest into plain values and their lines. YAML and JSON are read by one parser, JSON Lines a line
 * each, and CSV with the first line as the names of the fields.
 */
import { extname } from 'node:path'
import { CsvError, parse } from 'csv-parse/sync'
import { isMap, isNode, isScalar, LineCounter, visit } from 'yaml'
import { messageOf } from '../../errors.js'
import { parseYamlDocuments, type YamlDocument } from '../../host/yaml.js'
import { integerOf, readJson } from '../../protocol/json.js'
import { shortened } from '../../protocol/text.js'
import type { ManifestProblem, Path } from './problems.js'

export interface ParsedManifest {
  readonly value: unknown
  /** The line of a value, or of the innermost value around it that has one. Counted from 1. */
  lineOf(path: Path): number
  /** Whether the values are texts, whose types are those of the run's model. */
  readonly isCsv: boolean
}

/** Maximum size of a manifest. 10,000 runs with long prompts take a few MiB. */
export const MAX_BYTES = 16 * 1024 * 1024
/** Maximum nesting. The parser is recursive, and overflows the stack only at a far greater depth. */
const MAX_DEPTH = 60
/** More uses of aliases would fill the memory. */
const MAX_ALIASES = 100_000

/** Thrown for a text that cannot be parsed. */
class Invalid extends Error {
  readonly line: number
  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

/** Returns the problem of a text that cannot be parsed. The extension of `path` is that of the format; default: YAML. */
export function parseManifest(path: string, bytes: Uint8Array): ParsedManifest | ManifestProblem {
  try {
    const text = decode(bytes)
    if (text.trim() === '') throw new Invalid(1, 'the manifest is empty')
    const extension = extname(path).toLowerCase()
    if (extension === '.csv') return readCsv(text)
    if (['.jsonl', '.ndjson'].includes(extension) || (extension === '' && isJsonLines(text)))
      return readJsonLines(text)
    return readYaml(text)
  } catch (error) {
    if (error instanceof Invalid) return { line: error.line, message: error.message }
    throw error
  }
}

/** Decodes UTF-8 without the byte order mark that some editors write. */
function decode(bytes: Uint8Array): string {
  if (bytes.byteLength > MAX_BYTES)
    throw new Invalid(
      1,
      `the manifest is too large: ${bytes.byteLength} bytes; the limit is ${MAX_BYTES / 1024 / 1024} MiB`,
    )
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    throw new Invalid(1, 'the manifest is UTF-16 text: save it as UTF-8')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Invalid(1, 'the manifest is not valid UTF-8 text')
  }
}

/** Whether a text from standard input has one JSON object on each of several lines. */
const isJsonLines = (text: string): boolean => {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.length > 1 && lines.every((line) => /^\s*\{.*\}\s*$/.test(line))
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

function jsonIn(text: string, line: number, what = ''): unknown {
  try {
    return readJson(text)
  } catch (error) {
    throw new Invalid(line, `${what}invalid JSON: ${messageOf(error)}`)
  }
}

function readYaml(text: string): ParsedManifest {
  const counter = new LineCounter()
  counter.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) counter.addNewLine(at + 1)
  const lineAt = (offset = 0) => counter.linePos(offset).line
  // Tabs can begin a line in JSON, and not in YAML.
  const isJson = /^\s*[[{]/.test(text)
  const documents = parseYamlDocuments(isJson ? text.replaceAll('\t', ' ') : text, MAX_DEPTH, { merge: true })
  if (documents === undefined)
    throw new Invalid(1, `the manifest is nested more than ${MAX_DEPTH} levels deep`)
  const [document, second] = documents
  const [error] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])
  if (error !== undefined)
    throw new Invalid(
      lineAt(error.pos[0]),
      error.code === 'BLOCK_AS_IMPLICIT_KEY'
        ? 'put the text in quotes: without them, a ": " in it starts a map'
        : error.message.charAt(0).toLowerCase() + error.message.slice(1),
    )
  if (second !== undefined)
    throw new Invalid(
      lineAt(second.range[0]),
      'a second YAML document starts here; a manifest can have only one',
    )
  if (document?.contents == null) throw new Invalid(1, 'the manifest is empty')
  prepare(document, lineAt)
  try {
    return {
      value: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown,
      lineOf: (path) => lineAt(offsetOf(document, path)),
      isCsv: false,
    }
  } catch (error) {
    // An alias without an anchor, or too many aliases.
    throw new Invalid(1, messageOf(error))
  }
}

/** Keeps the digits of integers of 64 bits. Throws for a field that occurs twice, and for a value that contains itself. */
function prepare(document: YamlDocument, lineAt: (offset?: number) => number): void {
  const anchors = new Map<string, unknown>()
  visit(document, {
    Alias(_, node, path) {
      if (path.some((each) => each === anchors.get(node.source)))
        throw new Invalid(lineAt(node.range?.[0]), `*${node.source} is inside the value that it repeats`)
    },
    Scalar(_, node) {
      if (typeof node.value === 'number' && !Number.isSafeInteger(node.value))
        node.value = integerOf(node.source ?? '') ?? node.value
    },
    Collection(_, node) {
      if (node.anchor) anchors.set(node.anchor, node)
      if (!isMap(node)) return
      const names = new Set<string>()
      for (const { key } of node.items) {
        const line = lineAt(isNode(key) ? key.range?.[0] : undefined)
        if (!isScalar(key) || key.value === null) throw new Invalid(line, 'invalid field name')
        const name = String(key.value)
        if (names.has(name) && name !== 'Symbol(<<)')
          throw new Invalid(line, `the field "${shortened(name, 60)}" occurs twice`)
        names.add(name)
      }
    },
  })
}

/** Of a value, or of the innermost value around it that has a place: an alias and a merged field have none. */
function offsetOf(document: YamlDocument, path: Path): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) return node.range[0]
  }
  return document.contents?.range[0]
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
      const line = info.lines - (raw.trim().match(/\n/g)?.length ?? 0)
      lines.push(line)
      const cells = Object.entries(record).filter(([, cell]) => cell !== '')
      return Object.fromEntries(
        cells.map(([name, cell]) => [name, name === 'input' ? jsonIn(cell, line, 'input: ') : cell]),
      )
    })
    return { value, lineOf: ([row = -1]) => lines[Number(row)] ?? 1, isCsv: true }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new Invalid(
      Number(error.lines) || 1,
      `invalid CSV: ${error.message.replace(/ (at|on) line \d+/, '')}`,
    )
  }
}

function columnsOf(header: readonly string[]): string[] {
  const names = header.map((cell) => cell.trim())
  const twice = names.find((name, at) => name !== '' && names.indexOf(name) !== at)
  if (twice !== undefined) throw new Invalid(1, `the column "${twice}" occurs twice`)
  return names
}

/**
 * Keeps the lists of models: one file per service URL and account in the state folder, with a header line and one document
 * per line, so that finding a model reads only its line. "No list" is kept too. A damaged file, whose length is
 * not that in its header, counts as absent.
 */
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { readJson, writeJson } from '../../protocol/json.js'
import { type DocumentPath, documentJson, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { keptListPath, type ListOwner } from '../settings/folders.js'
import { plural } from '../terminal/format.js'

export interface KeptList {
  /** Time of the last answer, with or without a list, in milliseconds since the epoch; 0 without an answer. */
  readonly askedAtMs: number
  readonly hasList: boolean
  readonly etag: string | undefined
  /** Names of the models whose documents are not valid. */
  readonly invalid: readonly string[]
  /** The valid documents, one on each line. Not as text: decoding 8 MiB takes 20 ms. */
  readonly lines: Buffer
}

export const NOT_ASKED: KeptList = {
  askedAtMs: 0,
  hasList: false,
  etag: undefined,
  invalid: [],
  lines: Buffer.alloc(0),
}

/** Returns the kept list; undefined if there is none or if it cannot be read. */
export function readKept(stateFolder: string, owner: ListOwner): KeptList | undefined {
  try {
    const bytes = readFileSync(keptListPath(stateFolder, owner))
    const end = bytes.indexOf('\n')
    const lines = bytes.subarray(end + 1)
    const header: unknown = JSON.parse(bytes.toString('utf8', 0, end))
    if (!isObject(header) || header.address !== owner.address || header.bytes !== lines.length)
      return undefined
    const { asked_at, has_list, etag, invalid } = header
    if (typeof asked_at !== 'number' || !Array.isArray(invalid)) return undefined
    return {
      askedAtMs: asked_at,
      hasList: has_list === true,
      etag: typeof etag === 'string' ? etag : undefined,
      invalid: invalid.filter((name) => typeof name === 'string'),
      lines,
    }
  } catch {
    return undefined
  }
}

/** Replaces the kept list. Throws the system's errors. */
export async function writeKept(stateFolder: string, owner: ListOwner, kept: KeptList): Promise<void> {
  const path = keptListPath(stateFolder, owner)
  const [{ makeFolders }, { writeAtomically }] = await Promise.all([
    import('../../host/directories.js'),
    import('../../host/files.js'),
  ])
  const { askedAtMs: asked_at, hasList: has_list, etag, invalid, lines } = kept
  const facts = { address: owner.address, asked_at, has_list, etag, bytes: lines.length, invalid }
  makeFolders(dirname(path), 0o700)
  const content = Buffer.concat([Buffer.from(`${JSON.stringify(facts)}\n`), lines])
  await writeAtomically(path, content, { mode: 0o600, isFlushed: false })
}

/** Every line begins with the name of its model. A line end cannot be part of a JSON text. */
const lineOf = (document: ModelDocument): string => `${writeJson(documentJson(document))}\n`

/** Returns the document of a model. Undefined if the list does not have it, or if its line is damaged. */
export function findInLines(lines: Buffer, name: string): ModelDocument | undefined {
  const beginning = Buffer.from(`{"name":${JSON.stringify(name)},`)
  const isFirst = lines.subarray(0, beginning.length).equals(beginning)
  const before = isFirst ? -1 : lines.indexOf(`\n${beginning}`)
  const end = isFirst || before !== -1 ? lines.indexOf('\n', before + 1) : -1
  return end === -1 ? undefined : documentOf(lines.toString('utf8', before + 1, end))
}

export const documentsInLines = (lines: Buffer): readonly ModelDocument[] =>
  lines
    .toString()
    .split('\n')
    .flatMap((line) => documentOf(line) ?? [])

function documentOf(line: string): ModelDocument | undefined {
  try {
    return readModelDocument(readJson(line), () => {})
  } catch {
    return undefined
  }
}

/** More entries of a list are ignored. */
const MAX_MODELS = 10_000
const MAX_REPORTED = 3

export interface CheckedList extends Pick<KeptList, 'invalid' | 'lines'> {
  /** One sentence about all documents that are not valid; undefined if all are. */
  readonly warning: string | undefined
}

/** Checks the documents of a service. A document that is not valid does not affect the others. */
export function checkList(entries: readonly unknown[]): CheckedList {
  const lines = new Map<string, string>()
  const invalid: string[] = []
  const reasons: string[] = []
  for (const [index, entry] of entries.slice(0, MAX_MODELS).entries()) {
    const { document, problem } = checkEntry(entry)
    if (document !== undefined && !lines.has(document.name)) lines.set(document.name, lineOf(document))
    else {
      const name = document?.name ?? nameOf(entry) ?? `number ${index + 1}`
      invalid.push(name)
      reasons.push(`${name} (${document === undefined ? problem : 'it is listed twice'})`)
    }
  }
  const ignored = Math.max(0, entries.length - MAX_MODELS)
  const shown = [
    ...reasons.slice(0, MAX_REPORTED),
    ...(reasons.length > MAX_REPORTED ? [`and ${reasons.length - MAX_REPORTED} more`] : []),
    ...(ignored > 0 ? [`and ${ignored} entries over the limit of ${MAX_MODELS}`] : []),
  ].join('; ')
  return {
    invalid: [...new Set(invalid)].filter((name) => !lines.has(name)),
    lines: Buffer.from([...lines.values()].join('')),
    warning:
      shown === ''
        ? undefined
        : `The service's list has ${plural(reasons.length + ignored, 'invalid document')}: ${shown}. ` +
          'Use these models with --input; their parameters are not checked.',
  }
}

function checkEntry(entry: unknown): {
  readonly document?: ModelDocument | undefined
  readonly problem: string
} {
  let problem = 'it is invalid'
  let isFirst = true
  const report = (path: DocumentPath, message: string) => {
    if (isFirst) problem = printable(shortened([path.join('.'), message].join(' ').trim(), 160))
    isFirst = false
  }
  return { document: readModelDocument(entry, report), problem }
}

const nameOf = (entry: unknown): string | undefined =>
  isObject(entry) && typeof entry.name === 'string' && entry.name !== ''
    ? shortened(printable(entry.name), 200)
    : undefined

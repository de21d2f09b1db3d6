/**
 * Keeps the lists of models: one JSON file per service URL and account in the state folder. "No list" is kept too. A damaged
 * file counts as absent.
 */
import { readFileSync } from 'node:fs'
import { readJson, writeJson } from '../../protocol/json.js'
import { type DocumentPath, documentJson, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { keptListPath, type ListOwner } from '../settings/folders.js'
import { plural } from '../terminal/format.js'
import { writeOwnFile } from './own-file.js'

interface ListedModels {
  /** Names of the models whose documents are not valid. */
  readonly invalid: readonly string[]
  /** The valid documents by name, as JSON: a command reads one of them. */
  readonly documents: Readonly<Record<string, string>>
}

export interface KeptList extends ListedModels {
  /** Time of the last answer, with or without a list, in milliseconds since the epoch; 0 without an answer. */
  readonly askedAtMs: number
  readonly hasList: boolean
  readonly etag?: string | undefined
}

export const NOT_ASKED: KeptList = { askedAtMs: 0, hasList: false, invalid: [], documents: {} }

/** Returns the kept list; undefined if there is none or if it cannot be read. */
export function readKept(stateFolder: string, owner: ListOwner): KeptList | undefined {
  try {
    const kept = JSON.parse(readFileSync(keptListPath(stateFolder, owner), 'utf8'))
    const isKept = kept.address === owner.address && typeof kept.askedAtMs === 'number'
    return isKept && Array.isArray(kept.invalid) && isObject(kept.documents) ? kept : undefined
  } catch {
    return undefined
  }
}

/** Replaces the kept list. Throws the system's errors. */
export async function writeKept(stateFolder: string, owner: ListOwner, kept: KeptList): Promise<void> {
  const content = JSON.stringify({ ...kept, address: owner.address })
  await writeOwnFile(keptListPath(stateFolder, owner), content, { isFlushed: false })
}

/** Returns the document of a model. Undefined if the list does not have it, or if it is damaged. */
export function findKept({ documents }: ListedModels, name: string): ModelDocument | undefined {
  try {
    const text = Object.hasOwn(documents, name) ? documents[name] : undefined
    return text === undefined ? undefined : readModelDocument(readJson(text), () => {})
  } catch {
    return undefined
  }
}

/** More entries of a list are ignored. */
const MAX_MODELS = 10_000
const MAX_REPORTED = 3

interface CheckedList extends ListedModels {
  /** One sentence about all documents that are not valid; undefined if all are. */
  readonly warning: string | undefined
}

/** Checks the documents of a service. A document that is not valid does not affect the others. */
export function checkList(entries: readonly unknown[]): CheckedList {
  const documents: Record<string, string> = {}
  const invalid: string[] = []
  const reasons: string[] = []
  for (const [index, entry] of entries.slice(0, MAX_MODELS).entries()) {
    const { document, problem } = checkEntry(entry)
    if (document !== undefined && !Object.hasOwn(documents, document.name))
      documents[document.name] = writeJson(documentJson(document))
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
    invalid: [...new Set(invalid)].filter((name) => !Object.hasOwn(documents, name)),
    documents,
    warning:
      shown === ''
        ? undefined
        : `The service's list has ${plural(reasons.length + ignored, 'invalid model')}: ${shown}. ` +
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

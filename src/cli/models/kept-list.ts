/** Keeps the list of models of each service: one JSON file per address in the state folder. A damaged file counts as absent. */
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { readJson, writeJson } from '../../protocol/json.js'
import { type DocumentPath, documentJson, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { keptListPath } from '../settings/folders.js'
import { plural } from '../terminal/format.js'
import { writeOwnFile } from './own-file.js'

interface ListedModels {
  /** Names of the models whose documents are not valid. */
  readonly invalid: readonly string[]
  /** The valid documents by name, as JSON: a command reads one of them. */
  readonly documents: Readonly<Record<string, string>>
}

export interface KeptList extends ListedModels {
  /** When the service sent it, in milliseconds since the epoch. */
  readonly askedAtMs: number
}

/** Returns the kept list. Undefined if there is none or if it cannot be read. */
export function readKept(stateFolder: string, address: string): KeptList | undefined {
  try {
    const kept = JSON.parse(readFileSync(keptListPath(stateFolder, address), 'utf8'))
    const isKept = kept.address === address && typeof kept.askedAtMs === 'number'
    return isKept && Array.isArray(kept.invalid) && isObject(kept.documents) ? kept : undefined
  } catch {
    return undefined
  }
}

/** Replaces the kept list. Without a writable state folder, the next command has none. */
export async function writeKept(stateFolder: string, address: string, kept: KeptList): Promise<void> {
  const content = JSON.stringify({ ...kept, address })
  await writeOwnFile(keptListPath(stateFolder, address), content, { isFlushed: false }).catch(() => {})
}

/** The service has no list. */
export const dropKept = (stateFolder: string, address: string): Promise<void> =>
  rm(keptListPath(stateFolder, address), { force: true }).catch(() => {})

/** Returns the document of a model. Undefined if the list does not have it, or if it is damaged. */
export function findKept(list: ListedModels | undefined, name: string): ModelDocument | undefined {
  try {
    const text = list !== undefined && Object.hasOwn(list.documents, name) ? list.documents[name] : undefined
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

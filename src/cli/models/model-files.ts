/**
 * Documents of models on this machine: the files of `rushes models add` in the config folder, and the list that each
 * service sent, one file per address in the state folder.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolders } from '../../host/file-system.js'
import { writeAtomically } from '../../host/files.js'
import { errorCode } from '../../host/system-error.js'
import { readJson, writeJson } from '../../protocol/json.js'
import { documentJson, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { addedModelPath, addedModelsFolder, keptListPath } from '../settings/folders.js'
import { plural } from '../terminal/format.js'

/** Undefined: there is none. */
export type FoundDocument = ModelDocument | 'invalid' | undefined

/** Finds the document that was added for a model. */
export function findAdded(configFolder: string, model: string): FoundDocument {
  const document = readAdded(addedModelPath(configFolder, model))
  return document === 'invalid' || document?.name === model ? document : undefined
}

/** Lists all added documents by their paths. */
export function listAdded(configFolder: string): ReadonlyMap<string, FoundDocument> {
  const folder = addedModelsFolder(configFolder)
  let names: readonly string[] = []
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json') && !name.startsWith('.'))
  } catch {
    // No model was added.
  }
  return new Map(names.toSorted().map((name) => [join(folder, name), readAdded(join(folder, name))]))
}

function readAdded(path: string): FoundDocument {
  try {
    return readModelDocument(readJson(readFileSync(path, 'utf8')), () => {}) ?? 'invalid'
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') ? undefined : 'invalid'
  }
}

/** Stores a document. Throws the system's errors. */
export async function addModel(configFolder: string, document: ModelDocument): Promise<void> {
  const path = addedModelPath(configFolder, document.name)
  makeFolders(dirname(path), 0o700)
  await writeAtomically(path, `${writeJson(documentJson(document), { indent: 2 })}\n`, { mode: 0o600 })
}

/** Removes the file of a model, also if it is not valid. Throws the system's errors. */
export const removeModel = (configFolder: string, model: string): Promise<void> =>
  unlink(addedModelPath(configFolder, model))

export interface KeptList {
  readonly address: string
  /** When the service sent it, in milliseconds since the epoch. */
  readonly askedAtMs: number
  /** The documents by name, as JSON: a command reads one of them. Null: not valid. */
  readonly models: Readonly<Record<string, string | null>>
}

/** Undefined if there is none, or if it is damaged. */
export function readKept(stateFolder: string, address: string): KeptList | undefined {
  try {
    const kept = JSON.parse(readFileSync(keptListPath(stateFolder, address), 'utf8'))
    const isKept = kept.address === address && typeof kept.askedAtMs === 'number' && isObject(kept.models)
    return isKept ? kept : undefined
  } catch {
    return undefined
  }
}

/** Without a writable state folder, the next command has no list. */
export async function writeKept(stateFolder: string, kept: KeptList): Promise<void> {
  const path = keptListPath(stateFolder, kept.address)
  try {
    makeFolders(dirname(path), 0o700)
    await writeAtomically(path, JSON.stringify(kept), { isFlushed: false, mode: 0o600 })
  } catch {
    // It is asked for again.
  }
}

/** The service has no list. */
export const dropKept = (stateFolder: string, address: string): Promise<void> =>
  rm(keptListPath(stateFolder, address), { force: true }).catch(() => {})

export function findKept(models: KeptList['models'], name: string): FoundDocument {
  const text = Object.hasOwn(models, name) ? models[name] : undefined
  if (typeof text !== 'string') return text === null ? 'invalid' : undefined
  try {
    return readModelDocument(readJson(text), () => {})
  } catch {
    return undefined
  }
}

interface CheckedList {
  readonly models: KeptList['models']
  /** One sentence about all documents that are not valid; undefined if all are. */
  readonly warning: string | undefined
}

/** Checks the documents of a service. A document that is not valid does not affect the others. */
export function checkList(entries: readonly unknown[]): CheckedList {
  const models: Record<string, string | null> = {}
  const invalid: string[] = []
  for (const [index, entry] of entries.entries()) {
    const problems: string[] = []
    const document = readModelDocument(entry, (path, message) =>
      problems.push(`${path.join('.')} ${message}`),
    )
    if (document !== undefined) models[document.name] ??= writeJson(documentJson(document))
    else {
      const name = isObject(entry) && typeof entry.name === 'string' ? entry.name : `number ${index + 1}`
      models[name] ??= null
      invalid.push(shortened(printable(`${name} (${problems[0]?.trim()})`), 200))
    }
  }
  const warning =
    `The service's list has ${plural(invalid.length, 'invalid model')}: ${shortened(invalid.join('; '), 500)}. ` +
    'Use these models with --input; their parameters are not checked.'
  return { models, warning: invalid.length === 0 ? undefined : warning }
}

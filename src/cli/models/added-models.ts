/** The models that `rushes models add` stored: one JSON file per model, in the config folder. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../host/system-error.js'
import { readJson, writeJson } from '../../protocol/json.js'
import { documentJson, readModelDocument } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { addedModelPath, addedModelsFolder } from '../settings/folders.js'
import { writeOwnFile } from './own-file.js'

/** Returns the added document of a model; undefined if there is none. */
export function findAdded(configFolder: string, model: string): ModelDocument | 'invalid' | undefined {
  const document = readFile(addedModelPath(configFolder, model))
  return document === 'invalid' || document?.name === model ? document : undefined
}

export interface AddedModels {
  readonly documents: readonly ModelDocument[]
  /** Paths of files that are not valid. */
  readonly invalid: readonly string[]
}

export function listAdded(configFolder: string): AddedModels {
  const folder = addedModelsFolder(configFolder)
  const documents: ModelDocument[] = []
  const invalid: string[] = []
  for (const name of namesIn(folder)) {
    const path = join(folder, name)
    const document = readFile(path)
    if (document === undefined) continue
    if (document !== 'invalid' && addedModelPath(configFolder, document.name) === path)
      documents.push(document)
    else invalid.push(path)
  }
  return { documents, invalid }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
      .sort()
  } catch {
    return []
  }
}

function readFile(path: string): ModelDocument | 'invalid' | undefined {
  try {
    return readModelDocument(readJson(readFileSync(path, 'utf8')), () => {}) ?? 'invalid'
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') ? undefined : 'invalid'
  }
}

/** Stores a document. Throws the system's errors. */
export async function addModel(configFolder: string, document: ModelDocument): Promise<void> {
  const path = addedModelPath(configFolder, document.name)
  await writeOwnFile(path, `${writeJson(documentJson(document), { indent: 2 })}\n`)
}

/** Removes the file of a model, also if it is not valid. Throws the system's errors. */
export async function removeModel(configFolder: string, model: string): Promise<void> {
  const { unlink } = await import('node:fs/promises')
  await unlink(addedModelPath(configFolder, model))
}

/** `rushes models save`: writes the document of a model that `--engine` has used. */
import { existsSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { EXIT, usageError } from '../../errors.js'
import { didYouMean, quoteWord } from '../../protocol/text.js'
import { PREVIEW_DOCUMENTS } from '../../service/models/served-model.js'
import type { Context } from '../context/context.js'
import { documentText } from '../imports/import-document.js'
import { writeDocument } from '../imports/import-model.js'
import { documentOf, type LocalEngine, readEngines, typedWord } from './local-engine.js'

export interface SaveOptions {
  readonly overwrite?: boolean
}

/** `name`: of the model. Default: the last one. */
export async function saveCommand(
  { stateFolder, out }: Context,
  { path, name }: { readonly path: string; readonly name: string | undefined },
  { overwrite = false }: SaveOptions,
): Promise<number> {
  const entries = readEngines(stateFolder)
  const entry = name === undefined ? entries[0] : entries.find((each) => each.name === name)
  if (entry === undefined)
    throw usageError(
      name === undefined
        ? 'No command has used --engine yet.'
        : `No command has used the model "${name}" with --engine.${didYouMean(
            name,
            entries.map((each) => each.name),
          )}`,
      'Example: `rushes run image --local --engine images:http://127.0.0.1:1234/v1 "a red fox"`',
    )
  if (path !== '-' && !overwrite && existsSync(path))
    throw usageError(`${path} already exists.`, 'To replace it, add --overwrite.')
  const text = engineDocumentText(entry, dirname(resolve(path)))
  if (path === '-') out.line(text.trimEnd())
  else {
    await writeDocument(path, text)
    if (out.mode.json) out.json({ model: entry.name, result: 'saved' })
    else {
      const word = quoteWord(path)
      out.note(`Saved ${entry.name} in ${path}. Edit it, then check it: rushes doctor --models ${word}`)
      out.note(`To use it with --local: rushes config set local.models ${word}`)
    }
  }
  return EXIT.ok
}

/** `folder`: of the document, to which the path of a workflow is relative. */
export function engineDocumentText(entry: LocalEngine, folder: string): string {
  const { name, kind, engine, ratio } = entry
  const { workflow } = engine
  const path = typeof workflow === 'string' ? relative(folder, workflow) : ''
  const { properties } = documentOf(entry).input
  const removed = Object.keys(PREVIEW_DOCUMENTS[kind].input.properties).filter(
    (each) => !(each in properties),
  )
  const input = {
    ...Object.fromEntries(removed.map((each) => [each, false])),
    ...(ratio !== undefined && { aspect_ratio: properties.aspect_ratio }),
  }
  const value = {
    ...{ name, kind },
    engine: { ...engine, ...(path !== '' && !isAbsolute(path) && { workflow: path }) },
    ...(Object.keys(input).length > 0 && { input }),
  }
  return documentText(value, [
    `From --engine ${typedWord(entry)}`,
    'All keys: docs/engines.md. Further parameters: input, and send or slots. A price for a service: price.',
  ])
}

/**
 * Workflows of ComfyUI and schemas of providers in the shapes that people have: small files of our own, each with what is
 * found in it. A report of another shape becomes another file.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDocument, parseAddress } from '../../src/cli/imports/import-model.js'
import { readPublished } from '../../src/cli/imports/published.js'
import { readJson, writeJson } from '../../src/protocol/json.js'
import { mediaParameters } from '../../src/protocol/media-parameters.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import { findSlots } from '../../src/service/engines/comfyui/find-slots.js'
import { parseWorkflow, slotText } from '../../src/service/engines/comfyui/workflow.js'
import { readEngineOf } from '../support/model-servers/engine.js'
import { temporaryFolder } from '../support/temporary-folder.js'

type Json = Readonly<Record<string, unknown>>

/** The files of a folder, by their names. */
function shapesIn(folder: string): readonly (readonly [name: string, shape: Json])[] {
  const path = join(import.meta.dirname, folder)
  return readdirSync(path).map((name) => [
    name.replace('.json', ''),
    readJson(readFileSync(join(path, name), 'utf8')) as Json,
  ])
}

/** The slots of a workflow, and the parameters of its model; or why it is refused. */
function foundIn(workflow: unknown): Json {
  const text = writeJson(workflow)
  const parsed = parseWorkflow(text)
  if (!parsed.ok) return { refused: parsed.wrong }
  const { slots, problems } = findSlots(parsed.value)
  if (problems.length > 0) return { refused: problems.join('; ') }
  const path = join(temporaryFolder(), 'flow.json')
  writeFileSync(path, text)
  const engine = { type: 'comfyui', url: 'http://127.0.0.1:8188', workflow: path }
  const read = readEngineOf({ engine })
  if (read.problems.length > 0) return { refused: read.problems.join('; ') }
  return {
    ...Object.fromEntries(Object.entries(slots).map(([name, each]) => [name, each.map(slotText).join(' ')])),
    parameters: read.parameters.join(' '),
  }
}

test.each(shapesIn('real-workflows'))('the workflow %s', (_, { found, workflow }) =>
  expect(foundIn(workflow)).toEqual(found),
)

/** The document that an import writes: its kind, and what is sent, required, a file or left out. */
function importedFrom(model: string, schema: unknown): Json {
  const address = parseAddress(model)
  const published = readPublished(schema, address)
  if (published === undefined) return { refused: 'no schema' }
  const { value, warnings } = createDocument(address, published)
  const document = readModelDocument(value, (path, message) => {
    throw new Error(`${path.join('.')} ${message}`)
  })
  if (document === undefined) throw new Error('no document')
  const { type: _, model: name, ...engine } = value.engine as Json
  return {
    kind: value.kind,
    model: name,
    ...engine,
    parameters: Object.keys(document.input.properties).join(' '),
    required: document.input.required.join(' '),
    media: Object.fromEntries(mediaParameters(document.input)),
    ...(warnings.length > 0 && { warnings }),
  }
}

test.each(shapesIn('real-schemas'))('the schema %s', (_, { model, found, schema }) =>
  expect(importedFrom(String(model), schema)).toEqual(found),
)

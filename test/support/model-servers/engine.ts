/** Engines as the service makes them from the map `engine` of a document, and jobs for them. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../src/host/clock.js'
import { createPreviewEngine } from '../../../src/preview/index.js'
import { readModelDocument } from '../../../src/protocol/model-document.js'
import type { Engine, RenderJob } from '../../../src/service/engines/engine.js'
import { ENGINE_TYPES } from '../../../src/service/models/engine-table.js'
import { type ModelSources, openModelSet } from '../../../src/service/models/model-set.js'
import { withEngine } from '../../../src/service/models/model-with-engine.js'
import { whenOver } from '../after-file.js'
import { createManualClock } from '../clock.js'
import { createInstantEngine } from '../engines.js'
import { openNetwork } from '../network.js'
import { temporaryFolder } from '../temporary-folder.js'

export interface EngineDocument {
  readonly kind?: 'image' | 'video'
  readonly engine: Readonly<Record<string, unknown>>
  readonly input?: Readonly<Record<string, unknown>>
}

/** Returns the problems of the document, one line each, and the function that creates its engine. */
export function readEngineOf(
  { kind = 'image', engine, input }: EngineDocument,
  env: Readonly<Record<string, string>> = {},
) {
  const problems: string[] = []
  const report = (path: readonly (string | number)[], message: string) =>
    void problems.push(`${path.join('.')}: ${message}`)
  const document = readModelDocument({ name: 'acme/model', kind, input }, report)
  const named = Object.keys(input ?? {})
  const model = withEngine(document, { engine, types: ENGINE_TYPES, report, named, folder: '.', env })
  if (model === undefined) throw new Error(problems.join('\n'))
  const { createEngine: create } = model
  const schema = model.document.input
  return { problems, create, schema, parameters: Object.keys(schema.properties) }
}

/** Throws for a document with a problem. */
export function createEngineOf(
  document: EngineDocument,
  { clock, env = {} }: { readonly clock: Clock; readonly env?: Readonly<Record<string, string>> },
): Engine {
  const { problems, create } = readEngineOf(document, env)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const { fetch } = openNetwork({ clock })
  const engine = create({ env, clock, fetch, urls: [], preview: createPreviewEngine })
  whenOver(() => engine.close?.())
  return engine
}

/** Writes model documents into one file. Returns its path. */
export function modelsFile(...documents: readonly object[]): string {
  const path = join(temporaryFolder(), 'models.json')
  writeFileSync(path, JSON.stringify(documents))
  return path
}

/** Opens the models of a service, and the engine that renders all of them. */
export async function openModels(
  sources: Partial<ModelSources>,
  { clock, env = {} }: { readonly clock: Clock; readonly env?: NodeJS.ProcessEnv },
) {
  const { fetch } = openNetwork({ clock })
  const set = await openModelSet({ env, ...sources })
  const engine = set.createEngine({ env, clock, fetch, urls: [], preview: createInstantEngine })
  whenOver(() => engine.close?.())
  return { models: set.models, engine }
}

export const jobOf = (more: Partial<RenderJob> = {}): RenderJob => ({
  kind: 'image',
  run: { id: 'run_7', model: 'acme/model' },
  input: { prompt: 'a fox', aspect_ratio: '1:1' },
  folder: mkdtempSync(join(temporaryFolder(), 'job-')),
  references: [],
  signal: new AbortController().signal,
  ...more,
})

/** Opens an engine with a manual clock. A test may await a failing render later: it is no unhandled rejection until then. */
export function openEngine(document: EngineDocument, env: Readonly<Record<string, string>> = {}) {
  const clock = createManualClock()
  const engine = createEngineOf(document, { clock, env })
  const render = (more: Partial<RenderJob> = {}) => {
    const rendering = engine.render(jobOf(more))
    rendering.catch(() => {})
    return rendering
  }
  /** Renders while the clock moves. */
  const run = async (more?: Partial<RenderJob>) => await clock.runUntil(render(more))
  return { clock, engine, render, run }
}

/** A file as the service saves a reference. */
export function savedFile(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), 'reference')
  writeFileSync(path, bytes)
  return path
}

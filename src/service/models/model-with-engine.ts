/** A model with the engine that the map `engine` of its document describes. */
import { resolve } from 'node:path'
import { MAX_PROPERTIES } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean } from '../../protocol/text.js'
import type { Engine } from '../engines/engine.js'
import { PROVIDERS } from '../engines/hosted/providers.js'
import {
  type CreateEngine,
  EngineSettings,
  type ReadEngine,
  type SettingsSource,
} from '../engines/settings.js'
import { isPrivateHost } from '../rules/networks.js'
import { type ServedModel, withSeedParameter } from './served-model.js'

export type EngineTypes = Readonly<Record<string, ReadEngine>>

type EngineMap = Readonly<Record<string, unknown>>

/** A model with the engine that renders it. */
export interface ModelWithEngine extends ServedModel {
  readonly type: string
  /** The map `engine` of its document. The paths in it are absolute. */
  readonly engine: EngineMap
  /** Address of the engine's server. */
  readonly url?: string | undefined
  /** Keys of the engine's server, which no other engine's command gets. */
  readonly secrets?: readonly string[]
  readonly createEngine: CreateEngine
}

/** The model with the built-in renderer. A node that renders nothing needs no other one, whatever the `engine` is. */
export const previewOf = (
  document: ModelDocument,
  engine: EngineMap = { type: 'preview' },
): ModelWithEngine => ({
  document,
  type: 'preview',
  engine,
  createEngine: ({ preview }) => preview(),
})

/**
 * Returns the model with the engine that the map describes. Returns undefined without a document, or after the report of
 * a problem with the type.
 */
export function withEngine(
  document: ModelDocument | undefined,
  source: Omit<SettingsSource, 'engine'> & { readonly engine: unknown; readonly types: EngineTypes },
): ModelWithEngine | undefined {
  const { types, report, folder, isComplete = false } = source
  if (!isObject(source.engine)) {
    const isMissing = source.engine === undefined
    report([], isMissing ? 'is missing. Example: engine: { type: preview }' : 'must be a map')
    return undefined
  }
  const engine = withOwnFolder(source.engine, folder)
  const type = typeof engine.type === 'string' ? engine.type : ''
  const read = Object.hasOwn(types, type) ? types[type] : undefined
  if (read === undefined) {
    const known = Object.keys(types)
    report(['type'], `must be one of ${known.join(', ')}.${didYouMean(type, known)}`)
  }
  // An engine reads its settings for the properties of the document.
  if (read === undefined || document === undefined) return undefined
  const { required: needed } = document.input
  const named = [...(source.named ?? []), ...needed]
  const offered = isComplete ? document : withSeedParameter(document, engine, named)
  const settings = new EngineSettings({ ...source, needed, engine })
  const created = read(settings, offered)
  settings.reportUnknownKeys()
  const { missingKey: problem, secrets } = settings
  const url = engine.url ?? PROVIDERS[type]?.url
  return {
    document: isComplete ? document : withParameters(offered, settings),
    type,
    secrets,
    problem,
    createEngine: problem === undefined ? created : () => failing(problem),
    engine: isPath(engine.workflow) ? { ...engine, workflow: resolve(folder, engine.workflow) } : engine,
    ...(typeof url === 'string' && { url }),
  }
}

const isPath = (path: unknown): path is string => typeof path === 'string' && path.trim() !== ''

/** The command of a run runs in the folder in which the run was accepted, whatever that of the service is later. */
function withOwnFolder(engine: EngineMap, ofDocument: string): EngineMap {
  const { type, folder } = engine
  if (type !== 'command' || !(folder === undefined || isPath(folder))) return engine
  return { ...engine, folder: folder === undefined ? resolve('.') : resolve(ofDocument, folder) }
}

/** Returns the document with the parameters that its engine has a place for. */
function withParameters(
  { input, price, ...document }: ModelDocument,
  { leftOut, added, required }: EngineSettings,
): ModelDocument {
  const rest = <Value>(values: Readonly<Record<string, Value>>): Record<string, Value> =>
    Object.fromEntries(Object.entries(values).filter(([name]) => !leftOut.has(name)))
  const properties = rest(input.properties)
  for (const [name, schema] of added)
    if (Object.hasOwn(properties, name) || Object.keys(properties).length < MAX_PROPERTIES)
      properties[name] = schema
  const kept = input.required.filter((name) => !leftOut.has(name))
  return {
    ...document,
    input: { ...input, required: [...kept, ...required], properties },
    ...(price && { price: { ...price, factors: rest(price.factors) } }),
  }
}

/** An engine whose runs all fail with the problem. */
export const failing = (problem: string): Engine => ({
  render: () => Promise.reject(new Error(problem)),
})

/**
 * Whether each run of an engine without a `cost` may cost money: it is a hosted provider, or a server at a public
 * address. A name counts as public unless it is one of a local network; it is not resolved.
 */
export function chargesForRuns(engine: unknown): boolean {
  const { type, url } = isObject(engine) ? engine : {}
  if (typeof type === 'string' && PROVIDERS[type]?.isPaid) return true
  return typeof url === 'string' && URL.canParse(url) && !isPrivateHost(new URL(url).hostname)
}

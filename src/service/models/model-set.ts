/** The models of a node, and one engine that renders all of them. */
import { createHash } from 'node:crypto'
import { usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { readJson, writeJson } from '../../protocol/json.js'
import { type DocumentPath, documentJson, type ReportProblem } from '../../protocol/model-document.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { mayCost } from '../../protocol/price.js'
import { parseDuration } from '../../protocol/units.js'
import { type CanceledJob, type Engine, OutcomeUnknown } from '../engines/engine.js'
import type { EngineParts } from '../engines/read-engine.js'
import type { SettingsSource } from '../engines/settings.js'
import { type EngineTypes, failing, type ModelWithEngine, previewOf, withEngine } from './engine-settings.js'
import { readEngineWord, withKeyVariable } from './engine-word.js'
import { PREVIEW_DOCUMENTS, PREVIEW_MODELS, previewDocument, type ServedModel } from './served-model.js'

export interface ModelSet {
  /** Not empty. Every kind has a model. */
  readonly models: readonly ServedModel[]
  /** Creates the engine that renders all models. Closing it closes their engines. */
  createEngine(parts: EngineParts): ModelSetEngine
}

export interface ModelSetEngine extends Engine {
  /**
   * Returns the model that a run carries, also if this node has no document of it. Without one, returns the model of the
   * name; undefined if this node does not have that.
   */
  modelOf(run: Pick<CanceledJob, 'model' | 'document'>): Promise<ServedModel | undefined>
  /** Like `check` of the model's engine. Resolves with undefined for an engine without a server. */
  checkModel(model: string, signal: AbortSignal): Promise<string | undefined>
  /** Describes the account that pays for the runs of a model. Undefined if they cost nothing. */
  describePayer(model: string): string | undefined
  /** Returns the type of the model's engine, with the address of its server: `images at http://127.0.0.1:1234/v1`. */
  describeEngine(model: string): string
}

export interface ModelSources {
  /** File or folder of documents: `--models`, or the setting `local.models`. */
  readonly path?: string | undefined
  /** By kind: a shell command, or the short form of an engine, such as `images:http://127.0.0.1:1234/v1`. */
  readonly engines?: Partial<Readonly<Record<Kind, string>>>
  /** A model in addition to those of the documents. It gets another name if a document has the same. */
  readonly added?: AddedModel | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Time limit of a run of every engine but the preview. Infinity: no limit. Default: 30 minutes. */
  readonly timeoutMs?: number
  /** False for a node that renders nothing: it needs neither the files nor the keys of engines. Default: true. */
  readonly readsEngines?: boolean
  /** See `readModels`. */
  readonly isCharged?: boolean
}

/** A model whose document and engine do not come from a file. */
export interface AddedModel {
  readonly document: ModelDocument
  /** The map `engine` of a document. */
  readonly engine: Readonly<Record<string, unknown>>
  /** Beginning of the error about a problem of the engine. */
  readonly flag: string
}

const DEFAULT_TIMEOUT_MS = parseDuration(DEFAULTS.engineTimeout, '--engine-timeout')

/** The models without a setting. */
export const PREVIEW_SET: ModelSet = createModelSet(
  PREVIEW_MODELS.map(({ document }) => previewOf(document)),
  DEFAULT_TIMEOUT_MS,
)

/** Throws `usage`, with the problems of all documents. A kind without a document has its command, or its preview. */
export async function openModelSet(sources: ModelSources): Promise<ModelSet> {
  const { path, engines = {}, added, env, timeoutMs = DEFAULT_TIMEOUT_MS } = sources
  const { readsEngines = true, isCharged } = sources
  if (path === undefined && Object.keys(engines).length === 0 && added === undefined) return PREVIEW_SET
  // Loaded only when needed: a `--local` command with the previews starts without them.
  const [{ ENGINE_TYPES: types }, { readModels }, { chargesForRuns }] = await Promise.all([
    import('./engine-table.js'),
    import('./read-models.js'),
    import('./cost.js'),
  ])
  const options = { types, env, allowsMissingKeys: !readsEngines }
  const pricedFor = (engine: AddedModel['engine'], document: ModelDocument): ModelDocument =>
    chargesForRuns(engine) ? { ...document, cost: 'unknown' } : document
  const documents = path === undefined ? [] : readModels({ path, env, types, readsEngines, isCharged })
  const named = added && { ...added.document, name: freeName(added.document.name, documents) }
  const own = added && named && modelOf(added.engine, pricedFor(added.engine, named), added.flag, options)
  const others = KINDS.flatMap((kind) => {
    const document = PREVIEW_DOCUMENTS[kind]
    const word = engines[kind]
    const ofKind = documents.filter((each) => each.document.kind === kind)
    // With `--local`, a model that costs money does not take the place of the preview by itself.
    if (ofKind.some(({ document: own }) => isCharged !== false || own.default || !mayCost(own))) {
      if (word === undefined) return []
      throw usageError(
        `--engine ${kind}=… cannot be used with the ${kind} models in ${path}.`,
        'Remove the flag, or write its value into a model file.',
      )
    }
    if (word === undefined) return [previewOf(previewDocument(document))]
    const flag = `--engine ${kind}=`
    const engine = withKeyVariable(readEngineWord(word, flag), env)
    const priced = pricedFor(engine, document)
    if (!readsEngines) {
      const read = withEngine(priced, { ...options, engine, folder: '.', report: () => {} })
      return [previewOf(read?.document ?? priced, read?.engine)]
    }
    return [modelOf(engine, priced, `${flag}${engine.type === 'command' ? '' : `${engine.type}:`}…`, options)]
  })
  const models = [...(own ? [own] : []), ...documents, ...others]
  for (const { document } of others)
    if (models.filter((each) => each.document.name === document.name).length > 1)
      throw usageError(`${document.name} is the name of two models.`, 'Use another name in the model file.')
  return createModelSet(models, timeoutMs)
}

/** The name, with a number if a document has it. */
function freeName(name: string, documents: readonly ServedModel[]): string {
  const isTaken = (each: string) => documents.some(({ document }) => document.name === each)
  let free = name
  for (let number = 2; isTaken(free); number++) free = `${name}-${number}`
  return free
}

/**
 * Returns the model of a document and an engine that a flag names. Throws `usage`. `flag`: the beginning of its message.
 */
function modelOf(
  engine: AddedModel['engine'],
  document: ModelDocument,
  flag: string,
  options: Pick<SettingsSource, 'env' | 'allowsMissingKeys'> & { readonly types: EngineTypes },
): ModelWithEngine {
  const problems: string[] = []
  const report: ReportProblem = (path, message) => void problems.push(problemText(path, message))
  const model = withEngine(document, { ...options, engine, folder: '.', report })
  if (problems.length === 0 && model !== undefined) return model
  throw usageError(`${flag}: ${problems.join('; ').replace(/(?<![.?])$/, '.')}`)
}

const problemText = (path: DocumentPath, message: string): string =>
  message.startsWith('"') ? message : `${path.join('.')} ${message}`.trimStart()

function createModelSet(models: readonly ModelWithEngine[], timeoutMs: number): ModelSet {
  const served = models.map(servedModel)
  return { models: served, createEngine: (parts) => createSetEngine(models, served, parts, timeoutMs) }
}

function servedModel(model: ModelWithEngine): ServedModel {
  const { document, concurrency, url, problem, note, engine } = model
  const json = writeJson({
    ...documentJson(document),
    ...(document.cost !== undefined && document.cost !== 'unknown' && { cost: document.cost }),
    ...(concurrency !== undefined && { concurrency }),
    engine,
  })
  return {
    ...{ document, concurrency, isRemote: url !== undefined, problem, note, mayCost: mayCost(document) },
    carried: { hash: createHash('sha256').update(json).digest('hex'), json },
  }
}

/** A model with its engine on this node. */
interface Entry {
  readonly model: ModelWithEngine
  readonly served: ServedModel
  readonly engine: Engine
}

function createSetEngine(
  models: readonly ModelWithEngine[],
  served: readonly ServedModel[],
  parts: EngineParts,
  timeoutMs: number,
): ModelSetEngine {
  let preview: Engine | undefined
  const urls = [...parts.urls, ...models.flatMap(({ secrets = [] }) => secrets)]
  const shared: EngineParts = { ...parts, urls, preview: () => (preview ??= parts.preview()) }
  const entryOf = (model: ModelWithEngine, ofSet?: ServedModel): Entry => {
    const engine = model.createEngine(shared)
    const limitMs =
      engine.limitMs?.(model.document.name) ?? (model.type === 'preview' ? undefined : timeoutMs)
    return { model, engine, served: { ...(ofSet ?? servedModel(model)), limitMs } }
  }
  const entries = models.map((model, index) => entryOf(model, served[index]))
  /** By the JSON that runs carry. */
  const carried = new Map<string, Promise<Entry | undefined>>(
    entries.map((entry) => [entry.served.carried?.json ?? '', Promise.resolve(entry)]),
  )
  const named = (name: string | undefined) => entries.find(({ model }) => model.document.name === name)

  async function find({ model, document }: Pick<CanceledJob, 'model' | 'document'>) {
    const own = named(model)
    if (document === undefined) return own
    const known =
      carried.get(document) ?? readCarried(document, parts.env).then((read) => read && entryOf(read))
    carried.set(document, known)
    const entry = await known
    // Written by another node, whose files are elsewhere.
    const isSame = own?.model.type === entry?.model.type && own?.model.url === entry?.model.url
    return entry?.served.problem !== undefined && isSame ? own : entry
  }
  async function engineOf(run: Pick<CanceledJob, 'model' | 'document'>): Promise<Engine> {
    const found = await find(run)
    if (found === undefined) throw new Error(`This node does not have the model ${run.model}.`)
    return found.engine
  }
  return {
    async render(job) {
      const engine = await engineOf({ model: job.run?.model ?? '', document: job.document })
      const { handle, intent } = job.stored ?? {}
      if (engine.cancel === undefined && (handle ?? intent) !== undefined)
        throw new OutcomeUnknown('The model now has another engine, which cannot follow its job.')
      return await engine.render(job)
    },
    cancel: async (run) => await (await engineOf(run)).cancel?.(run),
    modelOf: async (run) => (await find(run))?.served,
    describeEngine(name) {
      const { type, url } = named(name)?.model ?? {}
      return url === undefined ? `${type}` : `${type} at ${url}`
    },
    describePayer(name) {
      const { document, keyVariable } = named(name)?.model ?? {}
      if (document?.cost === undefined) return undefined
      return keyVariable === undefined
        ? 'its server may charge for runs'
        : `paid by the account of ${keyVariable}`
    },
    checkModel: async (model, signal) => await (await engineOf({ model })).check?.(signal),
    async close() {
      const all = await Promise.all(carried.values())
      const engines = new Set([...entries, ...all].flatMap((entry) => entry?.engine ?? []))
      if (preview !== undefined) engines.add(preview)
      await Promise.all([...engines].map((engine) => engine.close?.()))
    },
  }
}

/** Reads the model that a run carries. Its engine fails with the problems that it has on this node, such as a missing file. */
async function readCarried(json: string, env: EngineParts['env']): Promise<ModelWithEngine | undefined> {
  const [{ ENGINE_TYPES: types }, { readOwnDocument }] = await Promise.all([
    import('./engine-table.js'),
    import('./read-models.js'),
  ])
  const problems: string[] = []
  const report: ReportProblem = (path, message) => void problems.push(problemText(path, message))
  const value = readJson(json)
  const { engine, concurrency } = value as { readonly engine: unknown; readonly concurrency?: number }
  const document = readOwnDocument({ value, file: '', report })
  const read = withEngine(document, {
    ...{ engine, types, env, folder: '.', report },
    ...{ isComplete: true, allowsMissingKeys: true },
  })
  if (document === undefined || read === undefined) return undefined
  const problem = read.problem ?? (problems.length === 0 ? undefined : `The engine: ${problems.join('; ')}.`)
  return {
    ...{ ...read, document, concurrency, problem },
    ...(problem !== undefined && { createEngine: () => failing(problem) }),
  }
}

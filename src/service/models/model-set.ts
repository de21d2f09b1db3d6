/** The models of a node, and one engine that renders all of them. */
import { createHash } from 'node:crypto'
import { usageError } from '../../errors.js'
import { readJson, writeJson } from '../../protocol/json.js'
import { documentJson, type ReportProblem } from '../../protocol/model-document.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { mayCost } from '../../protocol/price.js'
import { type CanceledJob, type Engine, OutcomeUnknown } from '../engines/engine.js'
import type { EngineParts } from '../engines/settings.js'
import { readEngineWord } from './engine-word.js'
import { chargesForRuns, failing, type ModelWithEngine, previewOf, withEngine } from './model-with-engine.js'
import { PREVIEW_DOCUMENTS, PREVIEW_MODELS, previewDocument, type ServedModel } from './served-model.js'

export interface ModelSet {
  /** Not empty. Every kind has a model. */
  readonly models: readonly ServedModel[]
  /** Creates the engine that renders all models. Closing it closes their engines. */
  createEngine(parts: EngineParts): ModelSetEngine
}

type CarryingRun = Pick<CanceledJob, 'model' | 'document'>

export interface ModelSetEngine extends Engine {
  /**
   * Returns the model that a run carries, also if this node has no document of it. Without one, returns the model of the
   * name; undefined if this node does not have that.
   */
  modelOf(run: CarryingRun): Promise<ServedModel | undefined>
}

export interface ModelSources {
  /** File or folder of documents: `--models`, or the setting `local.models`. */
  readonly path?: string | undefined
  /** By kind: a shell command, or the short form of an engine, such as `images:http://127.0.0.1:1234/v1`. */
  readonly engines?: Partial<Readonly<Record<Kind, string>>>
  /** A model in addition to those of the documents. */
  readonly added?: AddedModel | undefined
  readonly env: Readonly<Record<string, string | undefined>>
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

/** The models without a setting. */
export const PREVIEW_SET: ModelSet = createModelSet(PREVIEW_MODELS.map(({ document }) => previewOf(document)))

/** Throws `usage`, with the problems of all documents. A kind without a document has its command, or its preview. */
export async function openModelSet(sources: ModelSources): Promise<ModelSet> {
  const { path, engines = {}, added, env } = sources
  const { readsEngines = true, isCharged } = sources
  if (path === undefined && Object.keys(engines).length === 0 && added === undefined) return PREVIEW_SET
  const loaded = await loadEngines()
  const { types } = loaded
  const documents = path === undefined ? [] : loaded.readModels({ path, env, types, readsEngines, isCharged })
  const own = added && openAdded(added, sources, loaded)
  const others = KINDS.flatMap((kind) => {
    const word = engines[kind]
    const ofKind = documents.filter(({ document }) => document.kind === kind)
    // With `--local`, a model that costs money does not take the place of the preview by itself.
    if (ofKind.some(({ document }) => isCharged !== false || document.default || !mayCost(document))) {
      if (word === undefined) return []
      throw usageError(
        `--engine ${kind}=… cannot be used with the ${kind} models in ${path}.`,
        'Remove the flag, or write its value into a model file.',
      )
    }
    const document = PREVIEW_DOCUMENTS[kind]
    if (word === undefined) return previewOf(previewDocument(document))
    const engine = readEngineWord(word, `--engine ${kind}=`)
    const flag = `--engine ${kind}=${engine.type === 'command' ? '' : `${engine.type}:`}…`
    const opened = openAdded({ document, engine, flag }, sources, loaded, readsEngines)
    return readsEngines ? opened : previewOf(opened.document, opened.engine)
  })
  const models = [...(own ? [own] : []), ...documents, ...others]
  const names = models.map(({ document }) => document.name)
  const twin = names.find((name, index) => names.indexOf(name) < index)
  if (twin !== undefined)
    throw usageError(`${twin} is the name of two models.`, 'Use another name in the model file.')
  return createModelSet(models)
}

/** Loaded only when needed: a `--local` command with the previews starts without them. */
async function loadEngines() {
  const [{ ENGINE_TYPES: types }, { readModels, readOwnDocument }] = await Promise.all([
    import('./engine-table.js'),
    import('./read-models.js'),
  ])
  return { types, readModels, readOwnDocument }
}

type LoadedEngines = Awaited<ReturnType<typeof loadEngines>>

/** Returns the model of a document and an engine that a flag names. Throws `usage`, if `isChecked`. */
function openAdded(
  { document, engine, flag }: AddedModel,
  { env, readsEngines = true }: ModelSources,
  { types }: LoadedEngines,
  isChecked = true,
): ModelWithEngine {
  const priced: ModelDocument = chargesForRuns(engine) ? { ...document, cost: 'unknown' } : document
  const { problems, report } = collectProblems()
  const source = { engine, types, env, folder: '.', report, allowsMissingKeys: !readsEngines }
  const model = withEngine(priced, source)
  if (problems.length > 0 && isChecked)
    throw usageError(`${flag}: ${problems.join('; ').replace(/(?<![.?])$/, '.')}`)
  return model ?? previewOf(priced)
}

function collectProblems(): { readonly problems: readonly string[]; readonly report: ReportProblem } {
  const problems: string[] = []
  const report: ReportProblem = (path, message) =>
    void problems.push(message.startsWith('"') ? message : `${path.join('.')} ${message}`.trimStart())
  return { problems, report }
}

function createModelSet(models: readonly ModelWithEngine[]): ModelSet {
  return {
    models: models.map(servedModel),
    createEngine: (parts) => createSetEngine(models, parts),
  }
}

function servedModel(model: ModelWithEngine): ServedModel {
  const { document, concurrency, url, problem, engine } = model
  const json = writeJson({
    ...documentJson(document),
    ...(document.cost !== undefined && document.cost !== 'unknown' && { cost: document.cost }),
    ...(concurrency !== undefined && { concurrency }),
    engine,
  })
  return {
    document,
    concurrency,
    isRemote: url !== undefined,
    mayCost: mayCost(document),
    problem,
    carried: { hash: createHash('sha256').update(json).digest('hex'), json },
  }
}

/** A model with its engine on this node. */
interface Entry {
  readonly model: ModelWithEngine
  readonly served: ServedModel
  readonly engine: Engine
}

function createSetEngine(models: readonly ModelWithEngine[], parts: EngineParts): ModelSetEngine {
  let preview: Engine | undefined
  const urls = [...parts.urls, ...models.flatMap(({ secrets = [] }) => secrets)]
  const shared: EngineParts = { ...parts, urls, preview: () => (preview ??= parts.preview()) }
  const entryOf = (model: ModelWithEngine): Entry => ({
    model,
    engine: model.createEngine(shared),
    served: servedModel(model),
  })
  const entries = models.map(entryOf)
  /** By the JSON that runs carry. */
  const carried = new Map<string, Promise<Entry | undefined>>(
    entries.map((entry) => [entry.served.carried?.json ?? '', Promise.resolve(entry)]),
  )

  async function find({ model, document }: CarryingRun): Promise<Entry | undefined> {
    const own = entries.find((entry) => entry.model.document.name === model)
    if (document === undefined) return own
    const known =
      carried.get(document) ?? readCarried(document, parts.env).then((read) => read && entryOf(read))
    carried.set(document, known)
    const entry = await known
    // Written by another node, whose files are elsewhere.
    const isSame = own?.model.type === entry?.model.type && own?.model.url === entry?.model.url
    return entry?.served.problem !== undefined && isSame ? own : entry
  }
  async function engineOf(run: CarryingRun): Promise<Engine> {
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
  const { types, readOwnDocument } = await loadEngines()
  const { problems, report } = collectProblems()
  const value = readJson(json)
  const { engine, concurrency } = value as { readonly engine: unknown; readonly concurrency?: number }
  const document = readOwnDocument({ value, file: '', report })
  const source = { engine, types, env, folder: '.', report, isComplete: true, allowsMissingKeys: true }
  const read = withEngine(document, source)
  if (document === undefined || read === undefined) return undefined
  const problem = read.problem ?? (problems.length === 0 ? undefined : `The engine: ${problems.join('; ')}.`)
  return {
    ...read,
    document,
    concurrency,
    problem,
    ...(problem !== undefined && { createEngine: () => failing(problem) }),
  }
}

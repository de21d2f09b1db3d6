/** The models of a node, and one engine that renders all of them. */
import { usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { mayCost } from '../../protocol/price.js'
import { parseDuration } from '../../protocol/units.js'
import { type Engine, OutcomeUnknown } from '../engines/engine.js'
import type { EngineParts } from '../engines/read-engine.js'
import { type EngineTypes, type ModelWithEngine, previewOf, withEngine } from './engine-settings.js'
import { readEngineWord, withKeyVariable } from './engine-word.js'
import { namedModels, PREVIEW_MODELS, previewDocument, type ServedModel } from './served-model.js'

export interface ModelSet {
  /** Not empty. Every kind has a model. */
  readonly models: readonly ServedModel[]
  /** Warnings of documents that are accepted, one line each. */
  readonly warnings: readonly string[]
  /** Creates the engine that renders all models. Closing it closes their engines. */
  createEngine(parts: EngineParts): ModelSetEngine
}

export interface ModelSetEngine extends Engine {
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
  /** Names of the models of kinds without a document. */
  readonly names?: Partial<Readonly<Record<Kind, string>>>
  /** Models in addition to those of the documents. They replace documents of the same name. */
  readonly further?: readonly FurtherModel[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Time limit of a run of every engine but the preview. Infinity: no limit. Default: 30 minutes. */
  readonly timeoutMs?: number
  /** False for a node that renders nothing: it needs neither the files nor the keys of engines. Default: true. */
  readonly readsEngines?: boolean
  /** See `readModels`. */
  readonly isCharged?: boolean
}

/** A model whose document and engine do not come from a file. */
export interface FurtherModel {
  readonly document: ModelDocument
  /** The map `engine` of a document. The paths in it are absolute. */
  readonly engine: Readonly<Record<string, unknown>>
  /** Beginning of the error about a problem of the engine. Undefined: the model is then left out. */
  readonly flag?: string
}

const DEFAULT_TIMEOUT_MS = parseDuration(DEFAULTS.engineTimeout, '--engine-timeout')

/** The models without a setting. */
export const PREVIEW_SET: ModelSet = createModelSet(
  PREVIEW_MODELS.map(({ document }) => previewOf(document)),
  DEFAULT_TIMEOUT_MS,
)

/** Throws `usage`, with the problems of all documents. A kind without a document has its command, or its preview. */
export async function openModelSet(sources: ModelSources): Promise<ModelSet> {
  const {
    path,
    engines = {},
    names = {},
    further = [],
    env,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    readsEngines = true,
    isCharged,
  } = sources
  const isDefault = Object.keys(engines).length === 0 && Object.keys(names).length === 0
  if (path === undefined && isDefault && further.length === 0) return PREVIEW_SET
  // Loaded only when needed: a `--local` command with the previews starts without them.
  const [{ ENGINE_TYPES: types }, { readModels }, { chargesForRuns }] = await Promise.all([
    import('../engines/index.js'),
    import('./read-models.js'),
    import('./cost.js'),
  ])
  const warnings: string[] = []
  const warn = (text: string) => void warnings.push(text)
  const parts = { types, env, chargesForRuns }
  const added = further.flatMap((each) => {
    const allowsMissingKeys = !readsEngines
    const { model, problems } = readEngine(each.engine, each.document, { ...parts, allowsMissingKeys })
    if (problems.length === 0) return model ?? []
    if (each.flag === undefined) return []
    throw engineError(each.flag, problems)
  })
  const isAdded = (name: string) => added.some(({ document }) => document.name === name)
  const documents =
    path === undefined
      ? []
      : readModels({ path, env, types, readsEngines, isCharged, warn }).filter(
          ({ document }) => !isAdded(document.name),
        )
  const others = namedModels(names).flatMap(({ document }) => {
    const { kind } = document
    const flags = { '--engine': engines[kind], '--model-name': names[kind] }
    const ofKind = documents.filter((each) => each.document.kind === kind)
    // With `--local`, a model that costs money does not take the place of the preview by itself.
    if (ofKind.some(({ document: own }) => isCharged !== false || own.default || !mayCost(own))) {
      for (const [flag, value] of Object.entries(flags))
        if (value !== undefined)
          throw usageError(
            `${flag} ${kind}=… cannot be used with the ${kind} models in ${path}.`,
            'Remove the flag, or write its value into a model file.',
          )
      return []
    }
    const word = engines[kind]
    if (word === undefined) return [previewOf(previewDocument(document))]
    return [engineOf(word, document, { ...parts, readsEngines })]
  })
  const models = [...added, ...documents, ...others]
  for (const { document } of others)
    if (models.filter((each) => each.document.name === document.name).length > 1)
      throw usageError(
        `${document.name} is the name of two models.`,
        `Use another name (--model-name ${document.kind}=<provider>/<name>).`,
      )
  return createModelSet(models, timeoutMs, warnings)
}

interface EngineOptions {
  readonly types: EngineTypes
  readonly env: ModelSources['env']
  readonly allowsMissingKeys?: boolean
  chargesForRuns(engine: unknown): boolean
}

/** Reads the value of `--engine`. */
function engineOf(
  word: string,
  document: ModelDocument,
  { readsEngines, ...options }: EngineOptions & { readonly readsEngines: boolean },
): ModelWithEngine {
  const engine = withKeyVariable(readEngineWord(word, `--engine ${document.kind}=`), options.env)
  const { model, priced, problems } = readEngine(engine, document, options)
  if (!readsEngines) return previewOf(model?.document ?? priced)
  if (problems.length === 0 && model !== undefined) return model
  throw engineError(
    `--engine ${document.kind}=${engine.type === 'command' ? '' : `${engine.type}:`}…`,
    problems,
  )
}

function readEngine(
  engine: FurtherModel['engine'],
  document: ModelDocument,
  { chargesForRuns, ...options }: EngineOptions,
) {
  const problems: string[] = []
  const priced = chargesForRuns(engine) ? { ...document, cost: 'unknown' as const } : document
  const model = withEngine(priced, {
    ...{ ...options, engine, folder: '.' },
    report: (path, message) =>
      problems.push(message.startsWith('"') ? message : `${path.join('.')} ${message}`.trimStart()),
  })
  return { model, priced, problems }
}

const engineError = (flag: string, problems: readonly string[]) =>
  usageError(`${flag}: ${problems.join('; ').replace(/(?<![.?])$/, '.')}`)

function createModelSet(
  models: readonly ModelWithEngine[],
  timeoutMs: number,
  warnings: readonly string[] = [],
): ModelSet {
  return {
    warnings,
    models: models.map(({ document, concurrency, url, problem, note }) => ({
      ...{ document, concurrency, isRemote: url !== undefined, problem, note },
      mayCost: mayCost(document),
    })),
    createEngine(parts) {
      let preview: Engine | undefined
      const urls = [...parts.urls, ...models.flatMap(({ secrets = [] }) => secrets)]
      const shared: EngineParts = { ...parts, urls, preview: () => (preview ??= parts.preview()) }
      const byModel = new Map(
        models.map(({ document, type, createEngine }) => [
          document.name,
          { engine: createEngine(shared), limitMs: type === 'preview' ? undefined : timeoutMs },
        ]),
      )
      const engineOfModel = (model: string | undefined): Engine => {
        const found = byModel.get(model ?? '')
        if (found === undefined) throw new Error(`This node does not have the model ${model}.`)
        return found.engine
      }
      return {
        async render(job) {
          const engine = engineOfModel(job.run?.model)
          const { handle, intent } = job.stored ?? {}
          if (engine.cancel === undefined && (handle ?? intent) !== undefined)
            throw new OutcomeUnknown('The model has another engine now, which cannot follow its job.')
          return await engine.render(job)
        },
        cancel: async (run) => await engineOfModel(run.model).cancel?.(run),
        limitMs: (model) => byModel.get(model)?.engine.limitMs?.(model) ?? byModel.get(model)?.limitMs,
        describeEngine(model) {
          const { type, url } = models.find(({ document }) => document.name === model) ?? {}
          return url === undefined ? `${type}` : `${type} at ${url}`
        },
        describePayer(model) {
          const { document, keyVariable } = models.find((each) => each.document.name === model) ?? {}
          if (document?.cost === undefined) return undefined
          return keyVariable === undefined
            ? 'its server may charge for runs'
            : `paid by the account of ${keyVariable}`
        },
        checkModel: async (model, signal) => await engineOfModel(model).check?.(signal),
        async close() {
          const engines = new Set([...byModel.values()].map(({ engine }) => engine))
          if (preview !== undefined) engines.add(preview)
          await Promise.all([...engines].map((engine) => engine.close?.()))
        },
      }
    },
  }
}

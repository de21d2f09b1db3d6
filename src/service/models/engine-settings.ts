/** Reads the map `engine` of a document, and reports its problems. */
import { resolve } from 'node:path'
import { type DocumentPath, MAX_PROPERTIES, type ReportProblem } from '../../protocol/model-document.js'
import type { ModelDocument, ParameterSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, printable, shortened } from '../../protocol/text.js'
import type { Engine } from '../engines/engine.js'
import { PROVIDERS } from '../engines/hosted/providers.js'
import type { CreateEngine, EngineSettings, ReadEngine } from '../engines/read-engine.js'
import { withSeedParameter } from '../engines/seed.js'
import { readTextFile } from './read-text-file.js'
import type { ServedModel } from './served-model.js'

export type EngineTypes = Readonly<Record<string, ReadEngine>>

/** A model with the engine that renders it. */
export interface ModelWithEngine extends ServedModel {
  readonly type: string
  /** The map `engine` of its document. The paths in it are absolute. */
  readonly engine: Readonly<Record<string, unknown>>
  /** Address of the engine's server. */
  readonly url?: string | undefined
  /** Variable of the environment that has the key of the engine's server. */
  readonly keyVariable?: string | undefined
  /** Keys of the engine's server, which no other engine's command gets. */
  readonly secrets?: readonly string[]
  readonly createEngine: CreateEngine
}

/** The model with the built-in renderer. A node that renders nothing needs no other one, whatever the `engine` is. */
export const previewOf = (
  document: ModelDocument,
  engine: ModelWithEngine['engine'] = { type: 'preview' },
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
  const { types, report, isComplete = false } = source
  if (!isObject(source.engine)) {
    report(
      [],
      source.engine === undefined ? 'is missing. Example: engine: { type: preview }' : 'must be a map',
    )
    return undefined
  }
  const engine = withOwnFolder(source.engine, source.folder)
  const { url } = engine
  const type = typeof engine.type === 'string' ? engine.type : ''
  const known = Object.keys(types)
  const read = known.includes(type) ? types[type] : undefined
  if (read === undefined) report(['type'], `must be one of ${known.join(', ')}.${didYouMean(type, known)}`)
  // An engine reads its settings for the properties of the document.
  if (read === undefined || document === undefined) return undefined
  const { required: needed } = document.input
  const named = [...(source.named ?? []), ...needed]
  const offered = isComplete ? document : withSeedParameter(document, engine, named)
  const engineSettings = createEngineSettings({ ...source, needed, engine })
  const { settings, secrets, leftOut, added, required, missingKey, noteOf, reportUnknownKeys } =
    engineSettings
  const created = read(settings, offered)
  reportUnknownKeys()
  const problem = missingKey()
  const createEngine: CreateEngine = problem === undefined ? created : () => failing(problem)
  const address = url ?? PROVIDERS[type]?.url
  const keyVariable = engine.key_env ?? PROVIDERS[type]?.keyVariable
  return {
    document: isComplete ? document : withParameters(withoutParameters(offered, leftOut), added, required),
    ...{ type, createEngine },
    engine: isPath(engine.workflow)
      ? { ...engine, workflow: resolve(source.folder, engine.workflow) }
      : engine,
    ...{ secrets, problem, note: noteOf() },
    ...(typeof address === 'string' && { url: address }),
    // Anything else may be the key itself.
    ...(typeof keyVariable === 'string' && /^[A-Z][A-Z0-9_]*$/.test(keyVariable) && { keyVariable }),
  }
}

const isPath = (path: unknown): path is string => typeof path === 'string' && path.trim() !== ''

/** The command of a run runs in the folder in which the run was accepted, whatever that of the service is later. */
function withOwnFolder(
  engine: Readonly<Record<string, unknown>>,
  ofDocument: string,
): Readonly<Record<string, unknown>> {
  const { type, folder } = engine
  if (type !== 'command' || !(folder === undefined || isPath(folder))) return engine
  return { ...engine, folder: folder === undefined ? resolve('.') : resolve(ofDocument, folder) }
}

function withoutParameters(document: ModelDocument, names: ReadonlySet<string>): ModelDocument {
  const { input, price } = document
  const rest = <Value>(values: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> =>
    Object.fromEntries(Object.entries(values).filter(([name]) => !names.has(name)))
  return {
    ...document,
    input: {
      ...input,
      required: input.required.filter((name) => !names.has(name)),
      properties: rest(input.properties),
    },
    ...(price && { price: { ...price, factors: rest(price.factors) } }),
  }
}

function withParameters(
  document: ModelDocument,
  added: ReadonlyMap<string, ParameterSchema>,
  required: readonly string[],
): ModelDocument {
  const { input } = document
  const properties = { ...input.properties }
  for (const [name, schema] of added)
    if (Object.hasOwn(properties, name) || Object.keys(properties).length < MAX_PROPERTIES)
      properties[name] = schema
  return { ...document, input: { ...input, required: [...input.required, ...required], properties } }
}

/** An engine whose runs all fail with the problem. */
export const failing = (problem: string): Engine => ({
  render: () => Promise.reject(new Error(problem)),
})

export interface SettingsSource {
  readonly engine: Readonly<Record<string, unknown>>
  /** Reports at paths below `engine`. */
  readonly report: ReportProblem
  /** Like `report`, for values that are accepted. */
  readonly warn?: ReportProblem | undefined
  /** Parameters that the document itself names. */
  readonly named?: readonly string[]
  /** Parameters that each run must have. */
  readonly needed?: readonly string[]
  /** Whether the document has exactly the parameters that the engine has a place for, as that of a run. */
  readonly isComplete?: boolean
  /** Folder that the paths of files are relative to. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /**
   * For `--local`, which uses one of several models: a variable with a key that is not set fails the runs of its model.
   * Default: it is a problem of the document.
   */
  readonly allowsMissingKeys?: boolean
}

/** Far more than the largest workflow. */
const MAX_FILE_MIB = 16

/** Problem of the URL of a server. The message does not repeat the URL, which may contain a password. */
function urlProblem(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'must be an http or https URL'
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user name or a password: use key_env'
  return /[?#]/.test(value) ? 'must not contain a query or a fragment' : undefined
}

/** Describes a variable without a value. A text that cannot be a name may be the key itself, which is not printed. */
const unsetVariable = (variable: string): string =>
  /^[A-Z][A-Z0-9_]*$/.test(variable)
    ? `names ${variable}, which is not set in the environment. Set it to the key`
    : 'names a variable that is not set in the environment. Write the name of a variable, never the key itself'

/**
 * Returns the settings, and what the engine has read and said: the values of `secret`, the parameters that it leaves out
 * and adds, and the added ones that each run must have. `missingKey` describes a key that is not set (`allowsMissingKeys`).
 */
export function createEngineSettings(source: SettingsSource) {
  const { engine, report: reportProblem, folder, env, allowsMissingKeys = false } = source
  const { warn = () => {}, named = [], needed = [], isComplete = false } = source
  let missing: string | undefined
  const known = new Set(['type'])
  const secrets: string[] = []
  const leftOut = new Set<string>()
  const added = new Map<string, ParameterSchema>()
  const required: string[] = []
  let found: string | undefined
  const problems: DocumentPath[] = []
  const report: ReportProblem = (path, message) => {
    problems.push(path)
    reportProblem(path, message)
  }

  function rawValue(name: string): unknown {
    known.add(name)
    return Object.hasOwn(engine, name) ? (engine[name] ?? undefined) : undefined
  }

  function text(name: string): string | undefined {
    const value = rawValue(name)
    if (value === undefined || (typeof value === 'string' && value.trim() !== '')) return value
    report([name], typeof value === 'number' ? 'must be text: put it in quotes' : 'must be text')
    return undefined
  }

  function requiredText(name: string, example = ''): string | undefined {
    const value = text(name)
    if (value === undefined && !settings.hasProblem([name])) report([name], `is missing${example}`)
    return value
  }

  function reportMissingKey(path: DocumentPath, problem: string): void {
    if (allowsMissingKeys)
      missing = `The engine${path.length === 0 ? '' : `'s ${path.join('.')}`} ${problem}.`
    else report(path, problem)
  }

  const settings: EngineSettings = {
    text,
    value: rawValue,
    number(name) {
      const value = rawValue(name)
      if (value === undefined || (typeof value === 'number' && value > 0 && Number.isFinite(value)))
        return value
      report([name], 'must be a number greater than 0')
      return undefined
    },
    url(name, standard) {
      const value =
        standard === undefined
          ? requiredText(name, '. Example: http://127.0.0.1:8000/v1')
          : (text(name) ?? standard)
      if (value === undefined) return undefined
      const problem = urlProblem(value)
      if (problem === undefined) return new URL(value)
      report([name], problem)
      return undefined
    },
    map(name) {
      const value = rawValue(name)
      if (isObject(value)) return value
      if (value !== undefined) report([name], 'must be a map')
      return {}
    },
    file(name, example) {
      const path = requiredText(name, example)
      if (path === undefined) return undefined
      return readTextFile(resolve(folder, path), MAX_FILE_MIB, (problem) =>
        report([name], `names "${shortened(printable(path), 200)}", which ${problem}`),
      )
    },
    secret(name, standard, isOptional = false) {
      const variable = text(name) ?? standard
      if (variable === undefined) return undefined
      const value = env[variable]?.trim() ?? ''
      if (value !== '') {
        // Of `user:password` also the password alone.
        secrets.push(value, value.replace(/^[^:]*:/, ''))
        return value
      }
      if (variable !== standard) reportMissingKey([name], unsetVariable(variable))
      else if (!isOptional)
        reportMissingKey([], `needs the environment variable ${standard}, which is not set`)
      return undefined
    },
    report,
    warn,
    leaveOut(name, path, message, isRequiredToo = false) {
      if (!named.includes(name) && (isRequiredToo || !needed.includes(name))) leftOut.add(name)
      else if (!isComplete) report(path, message)
    },
    offer(name, schema, isRequired = false) {
      if (named.includes(name) || needed.includes(name)) return
      added.set(name, schema)
      if (isRequired) required.push(name)
    },
    note(line) {
      found = line
    },
    hasProblem: (path) => problems.some((each) => path.every((step, index) => each[index] === step)),
  }

  return {
    settings,
    secrets,
    leftOut,
    added,
    required,
    noteOf: () => found,
    missingKey: () => missing,
    reportUnknownKeys() {
      for (const name of Object.keys(engine))
        if (!known.has(name)) report([name], unknownKey(name, [...known], `an engine of type ${engine.type}`))
    },
  }
}

/** `"stepz" is not a key of …. Did you mean "steps"?` */
export const unknownKey = (name: string, known: readonly string[], owner: string): string =>
  `"${shortened(printable(name), 80)}" is not a key of ${owner}.${didYouMean(name, known)}`

/** The sections of a manifest: models, defaults and runs (a plain list has only runs). Finds the model of each run. */
import { writeJson } from '../../protocol/json.js'
import {
  builtInSchema,
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelSchema,
} from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { isKind } from '../../protocol/validate.js'
import type { ParsedManifest } from './parse.js'
import { type Path, type Problems, unknownMessage } from './problems.js'

export type Models = Readonly<Partial<Record<Kind, string>>>

export type Fields = Readonly<Record<string, unknown>>

/** What the caller knows of the models. */
export interface ModelSources {
  /** Returns the document of a model, if it is known. */
  documentOf(model: string): ModelDocument | undefined
  /** Models for kinds without a model in the manifest. */
  readonly settings: Models
}

export interface Sections extends ModelSources {
  readonly parsed: ParsedManifest
  readonly problems: Problems
  readonly models: Models
  readonly defaults: Fields
  readonly rows: readonly { readonly path: Path; readonly fields: Fields }[]
}

const SECTIONS = ['models', 'defaults', 'runs']

export function readSections(parsed: ParsedManifest, sources: ModelSources, problems: Problems): Sections {
  const { value } = parsed
  const { documentOf, settings } = sources
  const empty: Sections = { documentOf, settings, parsed, problems, models: {}, defaults: {}, rows: [] }
  if (Array.isArray(value)) return { ...empty, rows: rowsOf(value, [], problems) }
  if (!isObject(value)) {
    problems.add([], 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return empty
  }
  // `$schema` is for editors. Fields with `x-` hold YAML anchors that runs use.
  for (const name of Object.keys(value))
    if (!SECTIONS.includes(name) && name !== '$schema' && !name.startsWith('x-'))
      problems.add([name], unknownMessage('unknown field', name, SECTIONS))
  const mapOf = (name: string): Fields => {
    const map = value[name] ?? {}
    if (isObject(map)) return map
    problems.add([name], `${name} must be a map`)
    return {}
  }
  const defaults = mapOf('defaults')
  for (const name of ['name', 'matrix', 'exclude'])
    if (name in defaults) problems.add(['defaults', name], `defaults cannot set ${name}: put it in a run`)
  const models = modelsOf(mapOf('models'), problems)
  return { ...empty, models, defaults, rows: rowsOf(value.runs, ['runs'], problems) }
}

function rowsOf(value: unknown, path: Path, problems: Problems): Sections['rows'] {
  if (!Array.isArray(value)) {
    problems.add(value === undefined ? [] : path, 'runs must be a list: the runs to create')
    return []
  }
  return value.flatMap((fields: unknown, at) => {
    const own = [...path, at]
    if (isObject(fields)) return [{ path: own, fields }]
    problems.add(own, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return []
  })
}

function modelsOf(models: Fields, problems: Problems): Models {
  const given = Object.entries(models).filter(([, model]) => model !== null)
  for (const [name, model] of given)
    if (!isKind(name)) problems.add(['models', name], unknownMessage('unknown kind', name, KINDS))
    else if (!isModel(model)) problems.add(['models', name], invalidModel(model))
  return Object.fromEntries(given.filter(([, model]) => isModel(model)))
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : writeJson(value))

const isModel = (value: unknown): value is string => typeof value === 'string' && isModelName(value)

const invalidModel = (value: unknown): string =>
  `${typeof value === 'string' ? `"${value}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

/** The model of a run. */
export interface RowModel {
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the run. The settings or the lock file may have one. */
  readonly model: string | undefined
  /** Undefined if the parameters of the model are not known. */
  readonly schema: ModelSchema | undefined
  /** Undefined for the built-in schema of the kind. */
  readonly document: ModelDocument | undefined
  /** Undefined for a run with its parameters as fields. */
  readonly input: unknown
  /** What is wrong, and the field. */
  readonly problem: readonly [string, ...Path] | undefined
}

/** A run with its own kind or model takes neither from the defaults, since kind and model belong together. */
export function modelOf(own: Fields, defaults: Fields, { models, settings, documentOf }: Sections): RowModel {
  const isOwn = (own.kind ?? own.model ?? null) !== null
  const written = isOwn ? own : defaults
  const model = isModel(written.model) ? written.model : undefined
  const kinds: readonly unknown[] = [
    written.kind,
    KINDS.find((each) => model !== undefined && models[each] === model),
    // Of a model that is not known, beside parameters as fields.
    isOwn && (own.input ?? own.kind ?? null) === null ? defaults.kind : undefined,
  ]
  const named = kinds.find((each): each is Kind => typeof each === 'string' && isKind(each))
  const ofKind = named && (models[named] ?? settings[named])
  const document = documentOf(model ?? ofKind ?? '')
  const kind = document?.kind ?? named
  // An `input` of the defaults is for runs that have no kind without the document.
  const input = own.input ?? (named === undefined ? defaults.input : null) ?? undefined
  return {
    kind,
    model: model ?? (named && models[named]),
    schema: document?.input ?? (kind && builtInSchema(kind)),
    document,
    input,
    problem: modelProblem(written, kind, document, input),
  }
}

function modelProblem(
  { kind: writtenKind, model }: Fields,
  kind: Kind | undefined,
  document: ModelDocument | undefined,
  input: unknown,
): RowModel['problem'] {
  const isGiven = (value: unknown) => (value ?? null) !== null
  if (isGiven(writtenKind) && !(typeof writtenKind === 'string' && isKind(writtenKind)))
    return [unknownMessage('unknown kind', asText(writtenKind), KINDS), 'kind']
  if (isGiven(model) && !isModel(model)) return [invalidModel(model), 'model']
  if (isGiven(writtenKind) && document !== undefined && writtenKind !== document.kind)
    return [`the kind of ${document.name} is ${document.kind}, not ${writtenKind}`, 'kind']
  if (kind !== undefined || (isGiven(model) && input !== undefined)) return undefined
  if (!isGiven(model)) return [`kind is missing: ${KINDS.join(' or ')}`]
  return [
    `input is missing, and ${unknownParameters(model)}. Or give the whole input, or set kind ` +
      `(${KINDS.join(' or ')}) if it takes the same parameters`,
  ]
}

export const unknownParameters = (model: unknown): string =>
  `the parameters of ${model} are not known here: \`rushes models --refresh\` asks the service`

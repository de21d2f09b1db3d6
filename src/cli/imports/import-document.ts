/** The document of an imported model: written as YAML, read again, and compared with a newer one. */
import { isScalar, isSeq, stringify, visit, Document as YamlDocument } from 'yaml'
import { RushesError } from '../../errors.js'
import { writeJson } from '../../protocol/json.js'
import { schemaJson } from '../../protocol/model-document.js'
import type { Cost, Kind, ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { readDocuments, type SourceProblem } from '../../service/models/read-documents.js'
import { readOwnDocument } from '../../service/models/read-models.js'
import { mapInput, OUTPUT_COUNT } from './map-input.js'
import { addressText, type ModelAddress, type Published } from './published.js'

type Json = Readonly<Record<string, unknown>>

export interface ImportedDocument {
  readonly value: Json
  readonly warnings: readonly string[]
}

export interface DocumentParts {
  readonly address: ModelAddress
  readonly published: Published
  readonly kind: Kind
  readonly cost: Cost | undefined
  /** The file or URL of the schema, if it was not read from the provider. */
  readonly from: string | undefined
  readonly date: string
}

export function createDocument({
  address,
  published,
  kind,
  cost,
  from,
  date,
}: DocumentParts): ImportedDocument {
  const { provider, model } = address
  const { version = address.version, isOfficial, sha256, description } = published
  const { input, references, fixed, warnings } = mapInput(published.input, published.root)
  const ofRun = cost && costOfRun(cost, input.properties, fixed)
  const isPinned =
    provider === 'replicate' && version !== undefined && (address.version !== undefined || !isOfficial)
  return {
    warnings,
    value: {
      ...{ name: model, kind },
      ...(description !== undefined && { description: description.slice(0, 300) }),
      engine: {
        ...{ type: provider, model: isPinned ? `${model}:${version}` : model },
        ...(references !== undefined && { references }),
        ...(Object.keys(fixed).length > 0 && { fixed }),
      },
      input,
      ...(ofRun && {
        cost: {
          run: ofRun.run,
          ...(Object.keys(ofRun.factors).length > 0 && { factors: ofRun.factors }),
          currency: ofRun.currency,
        },
      }),
      source: {
        model: addressText(address),
        ...(from !== undefined && { schema: from }),
        ...(version !== undefined && { version }),
        ...{ date, sha256 },
      },
    },
  }
}

/** A factor is written for each number up to this one. A parameter with a higher maximum has no cost. */
const MAX_COUNT = 100

/**
 * Returns the cost of a run that may make several images or videos, each of which is charged. Undefined if a parameter
 * sets their number without a limit. `cost`: of one.
 */
function costOfRun(cost: Cost, properties: unknown, fixed: Json): Cost | undefined {
  const factors: Record<string, Record<string, number>> = {}
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
    if (!OUTPUT_COUNT.test(name) || !isObject(property) || property.type !== 'integer') continue
    const most = property.maximum
    if (typeof most !== 'number' || most > MAX_COUNT) return undefined
    const counts = Array.from({ length: Math.max(0, most - 1) }, (_, at) => at + 2)
    if (counts.length > 0) factors[name] = Object.fromEntries(counts.map((count) => [count, count]))
  }
  const times = Object.entries(fixed).reduce(
    (all, [name, n]) => (OUTPUT_COUNT.test(name) ? all * Number(n) : all),
    1,
  )
  return { ...cost, run: Number((cost.run * times).toFixed(6)), factors: { ...cost.factors, ...factors } }
}

/** Returns the text of a file. `comment`: lines at its beginning. */
export function documentText(value: Json, comment: readonly string[]): string {
  const document = new YamlDocument(value, { aliasDuplicateObjects: false })
  document.commentBefore = comment.map((line) => ` ${line}`).join('\n')
  visit(document, {
    Seq(_, node) {
      if (isSeq(node) && node.items.every((item) => isScalar(item))) node.flow = true
    },
  })
  return stringify(document, { lineWidth: 120 })
}

/** Reads a text as `serve --models` does. Throws `bad_response` with the problems: the provider published the schema. */
export function checkText(text: string, name: string): ModelDocument {
  const problems: SourceProblem[] = []
  const [source] = readDocuments(text, name, (problem) => problems.push(problem))
  const document = source && readOwnDocument(source)
  if (document !== undefined && problems.length === 0) return document
  const [first] = problems
  throw new RushesError(
    'bad_response',
    `The schema of ${name} cannot be used: ${first?.message ?? 'it is empty'}.`,
  )
}

export interface Change {
  /** `input.steps.maximum`, `engine.model`, `cost.run` … */
  readonly path: string
  /** Undefined: it did not exist. */
  readonly before: unknown
  /** Undefined: it no longer exists. */
  readonly after: unknown
}

/** Returns the differences between a document and a newer import of its model. Compares the input only for another hash. */
export function changesBetween(old: Json, now: Json): readonly Change[] {
  const [source, newSource] = [old.source, now.source].map((each) => (isObject(each) ? each : {}))
  const cost = differences('cost', withoutFactors(old.cost), withoutFactors(now.cost))
  const version = differences('source.version', source?.version, newSource?.version)
  if (source?.sha256 === newSource?.sha256) return [...version, ...cost]
  const changes = [
    ...differences('engine', ...pairOf(old.engine, now.engine, ['references', 'fixed'])),
    ...differences('input', inputOf(old), inputOf(now)),
  ]
  const schema = changes.length > 0 ? [] : differences('source.sha256', source?.sha256, newSource?.sha256)
  return [...version, ...changes, ...schema, ...cost]
}

/** Factors are the user's: no provider publishes them. */
const withoutFactors = (cost: unknown): unknown =>
  isObject(cost) ? { run: cost.run, currency: cost.currency } : undefined

const pairOf = (one: unknown, other: unknown, names: readonly string[]): [unknown, unknown] => {
  const part = (map: unknown) =>
    Object.fromEntries(names.map((name) => [name, isObject(map) ? map[name] : undefined]))
  return [part(one), part(other)]
}

/** The input as the program reads it, so that two ways to write it are equal. */
function inputOf(value: Json): Json {
  const document = readOwnDocument({ value, file: '', report() {}, warn() {} })
  if (document === undefined) return {}
  const { properties = {}, required } = schemaJson(document.input)
  return { ...(properties as Json), required }
}

function differences(path: string, before: unknown, after: unknown): readonly Change[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    return names.flatMap((name) => differences(`${path}.${name}`, before[name], after[name]))
  }
  const isEqual =
    before === undefined || after === undefined ? before === after : writeJson(before) === writeJson(after)
  return isEqual ? [] : [{ path, before, after }]
}

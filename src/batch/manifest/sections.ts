/** Reads the sections of a manifest: models, defaults, and the rows. A bare list has only rows. */
import { isModelName, KINDS, type Kind } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import { type Field, type Fields, isNull, type Node } from './nodes.js'
import type { ReportProblem } from './position.js'
import { DEFAULTS_FIELDS, TOP_FIELDS } from './row-fields.js'

export type Models = Readonly<Partial<Record<Kind, string>>>

export interface Sections {
  readonly models: Models
  readonly defaults: ReadonlyMap<string, Field>
  readonly rows: readonly Fields[]
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  return `${what} "${name}"${near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`}`
}

export function readSections(node: Node, report: ReportProblem): Sections {
  if (node.type === 'list') return { models: {}, defaults: new Map(), rows: rowsOf(node, report) }
  if (node.type === 'scalar') {
    report(node.at, 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return { models: {}, defaults: new Map(), rows: [] }
  }
  // `$schema` is for editors, `x-` for YAML anchors that the rows use.
  for (const [name, { at }] of node.fields)
    if (!isKnown(name)) report(at, unknownMessage('unknown field', name, TOP_FIELDS))
  const runs = node.fields.get('runs')
  if (runs === undefined) report(node.at, 'runs is missing: the list of runs to create')
  return {
    models: modelsOf(node.fields.get('models'), report),
    defaults: defaultsOf(node.fields.get('defaults'), report),
    rows: runs === undefined ? [] : rowsOf(runs.value, report),
  }
}

const isKnown = (name: string): boolean =>
  (TOP_FIELDS as readonly string[]).includes(name) || name === '$schema' || name.startsWith('x-')

function rowsOf(node: Node, report: ReportProblem): readonly Fields[] {
  if (node.type !== 'list') {
    report(node.at, 'runs must be a list')
    return []
  }
  return node.items.filter((item): item is Fields => {
    if (item.type !== 'fields')
      report(item.at, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return item.type === 'fields'
  })
}

function modelsOf(field: Field | undefined, report: ReportProblem): Models {
  if (field === undefined || isNull(field.value)) return {}
  if (field.value.type !== 'fields') {
    report(
      field.value.at,
      `models must be a map: {${KINDS.map((kind) => `${kind}: provider/name`).join(', ')}}`,
    )
    return {}
  }
  const models: Partial<Record<Kind, string>> = {}
  for (const [name, { at, value }] of field.value.fields) {
    const kind = KINDS.find((each) => each === name)
    if (kind === undefined) report(at, unknownMessage('unknown kind', name, KINDS))
    else if (isNull(value)) continue
    else if (value.type !== 'scalar' || !isModelName(value.text)) report(value.at, invalidModelMessage(value))
    else models[kind] = value.text
  }
  return models
}

export const invalidModelMessage = (value: Node): string =>
  `${value.type === 'scalar' ? `"${value.text}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

function defaultsOf(field: Field | undefined, report: ReportProblem): ReadonlyMap<string, Field> {
  if (field === undefined || isNull(field.value)) return new Map()
  if (field.value.type !== 'fields') {
    report(field.value.at, 'defaults must be a map of fields')
    return new Map()
  }
  for (const [name, { at }] of field.value.fields)
    if (name === 'name') report(at, 'defaults cannot set a name: each run needs its own')
    else if (name === 'matrix' || name === 'exclude')
      report(at, `defaults cannot set ${name}: put it in a run`)
    else if (!DEFAULTS_FIELDS.includes(name))
      report(at, unknownMessage('unknown field', name, DEFAULTS_FIELDS))
  return field.value.fields
}

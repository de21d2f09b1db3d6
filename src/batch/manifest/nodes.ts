/** Parsed form of a manifest, the same for every format: values and problems with their positions. */
import { LineCounter } from 'yaml'
import { integerOf } from '../../protocol/json.js'
import { describeLoss, isExact } from '../../protocol/parameters.js'
import { shortened } from '../../protocol/text.js'

export interface Scalar {
  readonly type: 'scalar'
  readonly value: string | number | bigint | boolean | null
  /** Text as written, so that a number keeps its digits. */
  readonly text: string
  readonly at: Position
}

export interface ListNode {
  readonly type: 'list'
  readonly items: readonly Node[]
  readonly at: Position
  /** Names of the columns, for the rows of CSV. */
  readonly columns?: ReadonlyMap<string, Position>
}

export interface Field {
  /** Position of the name. */
  readonly at: Position
  readonly value: Node
}

export type FieldMap = ReadonlyMap<string, Field>

export interface MapNode {
  readonly type: 'fields'
  readonly fields: FieldMap
  readonly at: Position
}

export type Node = Scalar | ListNode | MapNode

/** Maximum nesting. A recursive parser overflows the stack only at a far greater depth. */
export const MAX_DEPTH = 60

export const scalar = (value: Scalar['value'], at: Position, text = String(value ?? '')): Scalar => ({
  type: 'scalar',
  value,
  text,
  at,
})

/** Returns the scalar of a number, which keeps the digits of an integer of 64 bits. */
export const numberScalar = (value: number, at: Position, text: string): Scalar =>
  scalar(integerOf(text) ?? value, at, text)

/** Returns the value without positions. */
export function plainValue(node: Node): unknown {
  if (node.type === 'scalar') return node.value
  if (node.type === 'list') return node.items.map(plainValue)
  return Object.fromEntries([...node.fields].map(([name, { value }]) => [name, plainValue(value)]))
}

/** Yields a problem for each number that JSON would round. A text value keeps all digits. */
export function* lostDigitsIn(node: Node): Generator<ManifestProblem> {
  if (node.type === 'list') for (const item of node.items) yield* lostDigitsIn(item)
  else if (node.type === 'fields') for (const { value } of node.fields.values()) yield* lostDigitsIn(value)
  else if (typeof node.value === 'number' && !isExact(node.text, node.value)) {
    const loss = describeLoss(shortened(node.text, 60), node.value)
    const other = Number.isFinite(node.value) ? 'write that, or ' : ''
    yield { ...node.at, message: `${loss}: ${other}put it in quotes to send a text` }
  }
}

/** Whether the node is `null`, which means the same as an absent field: a row can reset a default with it. */
export const isNull = (node: Node): boolean => node.type === 'scalar' && node.value === null

export interface Position {
  /** Counted from 1. */
  readonly line: number
  /** Counted from 1, in UTF-16 units, like most editors do. */
  readonly column: number
}

export interface ManifestProblem extends Position {
  readonly message: string
}

/** Records a problem. Reading continues, so that all problems are reported together. */
export type ReportProblem = (at: Position, message: string) => void

export const START: Position = { line: 1, column: 1 }

export type PositionAt = (offset: number) => Position

/** Returns a function from offset to position. Lines end with `\n` in every format. */
export function positionsIn(text: string): PositionAt {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
  return (offset) => {
    const { line, col: column } = lines.linePos(offset)
    return { line, column }
  }
}

export interface ProblemCollector {
  readonly report: ReportProblem
  /** Problems by position, without duplicates. */
  list(): readonly ManifestProblem[]
}

export function createProblemCollector(): ProblemCollector {
  const found = new Map<string, ManifestProblem>()
  return {
    report({ line, column }, message) {
      found.set(`${line}:${column}:${message}`, { line, column, message })
    },
    list: () => [...found.values()].sort((a, b) => a.line - b.line || a.column - b.column),
  }
}

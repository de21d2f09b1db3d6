/** The parsed form of every format of a manifest: values with their positions, and the problems found at them. */
import { LineCounter } from 'yaml'
import { describeLoss, isExact } from '../../protocol/parameters.js'
import { shortened } from '../../protocol/text.js'

export interface Scalar {
  readonly type: 'scalar'
  readonly value: string | number | boolean | null
  /** As written: a number keeps its digits. */
  readonly text: string
  readonly at: Position
}

export interface ListNode {
  readonly type: 'list'
  readonly items: readonly Node[]
  readonly at: Position
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

/** Far below the depth at which a recursive parser overflows the stack. */
export const MAX_DEPTH = 60

export const scalar = (value: Scalar['value'], at: Position, text = String(value ?? '')): Scalar => ({
  type: 'scalar',
  value,
  text,
  at,
})

/** The value without positions. */
export function plainValue(node: Node): unknown {
  if (node.type === 'scalar') return node.value
  if (node.type === 'list') return node.items.map(plainValue)
  return Object.fromEntries([...node.fields].map(([name, { value }]) => [name, plainValue(value)]))
}

/** A problem for each number that JSON cannot keep. `plainValue` loses its digits; as a text it has them all. */
export function* lostDigitsIn(node: Node): Generator<ManifestProblem> {
  if (node.type === 'list') for (const item of node.items) yield* lostDigitsIn(item)
  else if (node.type === 'fields') for (const { value } of node.fields.values()) yield* lostDigitsIn(value)
  else if (typeof node.value === 'number' && !isExact(node.text, node.value)) {
    const loss = describeLoss(shortened(node.text, 60), node.value)
    const other = Number.isFinite(node.value) ? 'write that, or ' : ''
    yield { ...node.at, message: `${loss}: ${other}put it in quotes to send a text` }
  }
}

/** `null` means the same as an absent field, so that a row can undo a default. */
export const isNull = (node: Node): boolean => node.type === 'scalar' && node.value === null

export interface Position {
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 units, as most editors count. */
  readonly column: number
}

export interface ManifestProblem extends Position {
  readonly message: string
}

/** Records a problem; reading continues, so that all problems are reported together. */
export type ReportProblem = (at: Position, message: string) => void

export const START: Position = { line: 1, column: 1 }

export type PositionAt = (offset: number) => Position

/** For all formats, lines end with `\n`. */
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
  /** Ordered by position; the same message at the same position counts once. */
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

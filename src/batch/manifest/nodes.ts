/** What every format of a manifest is parsed into: values with their positions. */
import { describeLoss, isExact } from '../../protocol/exact-number.js'
import { shortened } from '../../protocol/text.js'
import type { ManifestProblem, Position } from './position.js'

export interface Scalar {
  readonly type: 'scalar'
  readonly value: string | number | boolean | null
  /** As written: a number keeps its digits. */
  readonly text: string
  readonly at: Position
}

export interface List {
  readonly type: 'list'
  readonly items: readonly Node[]
  readonly at: Position
}

export interface Field {
  /** Position of the name. */
  readonly at: Position
  readonly value: Node
}

export interface Fields {
  readonly type: 'fields'
  readonly fields: ReadonlyMap<string, Field>
  readonly at: Position
}

export type Node = Scalar | List | Fields

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

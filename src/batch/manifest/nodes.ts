/** What every format of a manifest is parsed into: values with their positions. */
import type { Position } from './position.js'

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

/** `null` means the same as an absent field, so that a row can undo a default. */
export const isNull = (node: Node): boolean => node.type === 'scalar' && node.value === null

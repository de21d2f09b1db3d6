/** What every format of a manifest is read into: values that know where they stand. */
import type { Position } from './position.js'

export interface Scalar {
  readonly type: 'scalar'
  readonly value: string | number | boolean | null
  /** A number keeps the digits that it was written with. */
  readonly text: string
  readonly at: Position
}

export interface List {
  readonly type: 'list'
  readonly items: readonly Node[]
  readonly at: Position
}

export interface Field {
  /** Of the name. */
  readonly at: Position
  readonly value: Node
}

export interface Fields {
  readonly type: 'fields'
  readonly fields: ReadonlyMap<string, Field>
  readonly at: Position
}

export type Node = Scalar | List | Fields

/** Deeper than any manifest; below the depth at which a parser that calls itself runs out of stack. */
export const MAX_DEPTH = 60

export const scalar = (value: Scalar['value'], at: Position, text = String(value ?? '')): Scalar => ({
  type: 'scalar',
  value,
  text,
  at,
})

/** The value alone. */
export function plain(node: Node): unknown {
  if (node.type === 'scalar') return node.value
  if (node.type === 'list') return node.items.map(plain)
  return Object.fromEntries([...node.fields].map(([name, { value }]) => [name, plain(value)]))
}

/** `null` says the same as a field that is not there, so that a row can undo a default. */
export const isNull = (node: Node): boolean => node.type === 'scalar' && node.value === null

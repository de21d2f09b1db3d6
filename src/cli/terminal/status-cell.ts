/** A run's status as cells: id, status, and its URLs or files separated by spaces. */
import type { RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'

export const statusCells = ({ id, status }: RunState, places: readonly string[]): readonly string[] =>
  [id, status, places.join(' ')].map(printable)

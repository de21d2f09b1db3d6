/** A run's status as cells: id, status, URLs separated by spaces. */
import type { RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'

export const statusCells = (state: RunState): readonly string[] =>
  [state.id, state.status, state.urls.join(' ')].map(printable)

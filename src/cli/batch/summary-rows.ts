/** The rows of a job summary, from the steps of a plan and their results. Pure. */
import { LEFT_ALONE, type RowResult } from '../../batch/carry-out/index.js'
import type { Step } from '../../batch/plan/index.js'
import type { SummaryRow } from './job-summary.js'
import { stepWords } from './show.js'

export function planRow(step: Step): SummaryRow {
  const [action = '', name = '', file = '', reason = ''] = stepWords(step)
  const isUpToDate = step.action.do === 'up_to_date'
  return {
    cells: [name, action, reason, file],
    state: action === 'create' || action === 'download' ? `to ${action}` : action,
    importance: isUpToDate ? 'up to date' : 'active',
    file: isUpToDate ? file : undefined,
  }
}

/** `open`: the state of a row that the batch has begun and not finished, or not begun. */
export function resultRow(step: Step, row: RowResult | undefined, open: string): SummaryRow {
  const [action = '', name = '', file = '', reason = ''] = stepWords(step)
  const isActive = step.action.do === 'create' || step.action.do === 'download'
  const state = row === undefined ? (isActive ? open : action) : row.result.replaceAll('_', ' ')
  const message = messageOf(step, row)
  return {
    cells: [name, action, reason, row?.made?.file ?? file, state, row?.run ?? '', message],
    state,
    importance: importanceOf(state, message),
    file: row?.made?.file ?? (state === 'up to date' ? step.file : undefined),
  }
}

function messageOf({ action }: Step, row: RowResult | undefined): string {
  if (row?.error !== undefined) return row.error.message
  if (row?.blockedBy !== undefined) return `needs ${row.blockedBy}`
  if (action.do === 'unconfirmed') return LEFT_ALONE.message
  if (action.do !== 'blocked') return ''
  return action.by === undefined ? action.why : `needs ${action.by}`
}

function importanceOf(state: string, message: string): SummaryRow['importance'] {
  if (message !== '') return 'failed'
  return state === 'up to date' ? 'up to date' : 'active'
}

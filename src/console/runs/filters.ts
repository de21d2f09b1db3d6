/** The filters of the list of runs, as they stand in the fragment. Pure. */
import type { RunSummary, RunsQuery } from '../../protocol/console.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { LOCAL_STATUSES, type LocalStatus } from '../../protocol/run-state.js'

export interface Filters {
  readonly status?: LocalStatus
  readonly kind?: Kind
  /** The id of a key, or `console`. */
  readonly key?: string
  readonly search?: string
}

/** A part that is not valid is left out. */
export function filtersOf(query: Readonly<Record<string, string>>): Filters {
  const { status, kind, key, search } = query
  const knownStatus = LOCAL_STATUSES.find((each) => each === status)
  const knownKind = KINDS.find((each) => each === kind)
  return {
    ...(knownStatus !== undefined && { status: knownStatus }),
    ...(knownKind !== undefined && { kind: knownKind }),
    ...(key !== undefined && /^(console|\d{1,15})$/.test(key) && { key }),
    ...(search !== undefined && search.trim() !== '' && { search }),
  }
}

/** The query of a request, and of the fragment: `{ status: 'failed' }`. */
export const queryOf = (filters: Filters): RunsQuery => filters

export const isFiltered = (filters: Filters): boolean => Object.keys(filters).length > 0

export const isSameFilter = (one: Filters, other: Filters): boolean =>
  one.status === other.status &&
  one.kind === other.kind &&
  one.key === other.key &&
  one.search === other.search

/** For what changes after a run was listed: its status alone. */
export const stillMatches = ({ status }: Filters, run: RunSummary): boolean =>
  status === undefined || status === run.status

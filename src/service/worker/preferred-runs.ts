/** The queued runs that a worker claims before other runs of their account, in the order in which they were polled. */
import type { StoredRun } from '../stored-run.js'

const MAX_PREFERRED = 1_000
/** Maximum number of runs that one claim names: the most recently polled ones. */
const MAX_ASKED = 100

export type QueuedRun = Pick<StoredRun, 'id' | 'model'>

export interface PreferredRuns {
  /**
   * Adds the run, or moves it to the end. With `bounded`, drops the oldest at the limit: a run that was polled long ago
   * may belong to another node.
   */
  add(run: QueuedRun, options: { readonly bounded: boolean }): void
  remove(ids: readonly string[]): void
  /** Returns the runs of these models that the next claim names, and whether there are more of them. */
  next(models: readonly string[]): { readonly ids: readonly string[]; readonly hasMore: boolean }
}

export function createPreferredRuns(): PreferredRuns {
  const modelOf = new Map<string, string>()
  return {
    add({ id, model }, { bounded }) {
      modelOf.delete(id)
      const [oldest] = modelOf.keys()
      if (bounded && modelOf.size >= MAX_PREFERRED && oldest !== undefined) modelOf.delete(oldest)
      modelOf.set(id, model)
    },
    remove(ids) {
      for (const id of ids) modelOf.delete(id)
    },
    next(models) {
      const asked = new Set(models)
      const all = [...modelOf].flatMap(([id, model]) => (asked.has(model) ? id : []))
      return { ids: all.slice(-MAX_ASKED), hasMore: all.length > MAX_ASKED }
    },
  }
}

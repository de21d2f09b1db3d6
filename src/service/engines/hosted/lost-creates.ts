/** The jobs that the runs of this process have, and those of creates whose answer was lost, in the list of a provider. */
import type { JobHandle, JobIntent } from '../engine.js'
import { NoJobId } from '../jobs.js'
import { hasSentInput } from '../outcome.js'

/** The clock of the provider may differ. */
const MAX_SKEW_MS = 60_000
const MAX_KNOWN = 10_000

export interface ListedJob {
  readonly id: unknown
  readonly input: unknown
  /** ISO 8601. A job without a valid time counts. */
  readonly createdAt: unknown
}

export interface LostCreates {
  /** Returns the job of a create. Throws `NoJobId` without an id. */
  accept(id: unknown, urls: Readonly<Record<string, unknown>>): JobHandle
  /** Must be called with the id of each job that is followed. */
  know(id: string): void
  /** Earliest time of a job, for the query. */
  since(intent: JobIntent): string
  /** Returns the jobs with the input of the create that no other run of this process has. */
  find(intent: JobIntent, listed: readonly ListedJob[]): readonly JobHandle[]
}

export function createLostCreates(): LostCreates {
  const known = new Set<string>()
  const know = (id: string): void => {
    known.add(id)
    const [oldest] = known
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
  }
  return {
    accept(id, urls) {
      if (typeof id !== 'string' || id === '') throw new NoJobId()
      know(id)
      const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'
      return { id, urls: Object.fromEntries(Object.entries(urls).filter(isText)) }
    },
    know,
    since: ({ sentAtMs }) => new Date(sentAtMs - MAX_SKEW_MS).toISOString(),
    find(intent, listed) {
      const ids = listed.flatMap(({ id, input, createdAt }) => {
        const isEarlier = Date.parse(`${createdAt}`) < intent.sentAtMs - MAX_SKEW_MS
        const isMatch = typeof id === 'string' && !known.has(id) && !isEarlier && hasSentInput(intent, input)
        return isMatch ? [id] : []
      })
      const [only, ...others] = new Set(ids)
      // Another run with the same input must not get the same job.
      if (only !== undefined && others.length === 0) know(only)
      return [...new Set(ids)].map((id) => ({ id }))
    },
  }
}

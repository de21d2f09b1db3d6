/** The jobs of creates whose answer was lost, in the list of a provider. */
import type { JobHandle, JobIntent } from '../engine.js'
import { hasSentInput } from '../outcome.js'

/** The clock of the provider may differ. */
const MAX_SKEW_MS = 60_000
/** A create whose intent was stored reaches the provider within this time. A later job is another one. */
const MAX_SEND_MS = 120_000

export interface ListedJob {
  readonly id: unknown
  readonly input: unknown
  /** ISO 8601. A job without a valid time counts. */
  readonly createdAt: unknown
}

/** Returns the earliest time of a job, for the query. */
export const earliestTime = ({ sentAtMs }: JobIntent): string =>
  new Date(sentAtMs - MAX_SKEW_MS).toISOString()

/** Returns the jobs with the input of the create. */
export function jobsOfCreate(intent: JobIntent, listed: readonly ListedJob[]): readonly JobHandle[] {
  const ids = listed.flatMap(({ id, input, createdAt }) => {
    const createdAtMs = Date.parse(`${createdAt}`)
    const isOther =
      createdAtMs < intent.sentAtMs - MAX_SKEW_MS || createdAtMs > intent.sentAtMs + MAX_SEND_MS + MAX_SKEW_MS
    return typeof id === 'string' && !isOther && hasSentInput(intent, input) ? [id] : []
  })
  return [...new Set(ids)].map((id) => ({ id }))
}

/** What the statements of `runs.ts` and `queue.ts` share. */
import type { ClaimedRun } from './contract.js'
import type { Dialect, SqlValue } from './sql.js'

/** The run with this claim. */
export const MINE = `id = $1 AND owner = $2 AND attempt = $3`
export const mine = ({ id, owner, attempt }: ClaimedRun): readonly SqlValue[] => [id, owner, attempt]

/** A run that comes back goes to the head of the queue of its model: its own turn may be far from the others. */
export const backInQueue = ({ index }: Dialect): string => `
      status = 'queued', owner = '', started_at = NULL, lease_until = 0, turn = coalesce((
        SELECT min(head.turn) FROM runs AS head${index('runs_turn')}
        WHERE head.status = 'queued' AND head.model = runs.model), 0)`

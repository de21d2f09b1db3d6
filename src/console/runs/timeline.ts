/** The moments of a run: queued, each attempt to render it, and its end. Pure. */
import type { RunAttempt, RunDetails } from '../../protocol/console.js'
import type { LocalStatus } from '../../protocol/run-state.js'

interface TimelineEntry {
  readonly label: string
  /** ISO 8601 time. */
  readonly at: string
  /** Time until the next entry, or until now for the last entry of an unfinished run. */
  readonly durationMs: number | undefined
  /** Text after the duration, such as `in the queue`. */
  readonly during: string | undefined
  readonly tone: 'neutral' | 'active' | 'success' | 'danger'
}

type Moment = Omit<TimelineEntry, 'durationMs'>

export function timelineOf(run: RunDetails, nowMs: number): readonly TimelineEntry[] {
  const moments = momentsOf(run)
  return moments.map((moment, index) => {
    const end = moments[index + 1]?.at
    const endMs = end === undefined ? (run.finished_at === null ? nowMs : undefined) : Date.parse(end)
    return {
      ...moment,
      durationMs:
        endMs === undefined || moment.during === undefined
          ? undefined
          : Math.max(0, endMs - Date.parse(moment.at)),
    }
  })
}

function momentsOf(run: RunDetails): readonly Moment[] {
  const attempts = attemptsOf(run)
  const isOne = attempts.length === 1
  const queued = { label: 'Queued', at: run.created_at, during: 'in the queue', tone: 'neutral' } as const
  const tried = attempts.flatMap((attempt, index) => [
    {
      label: isOne ? 'Started' : `Attempt ${index + 1} started`,
      at: attempt.started_at,
      during: 'rendering',
      tone: attempt.ended_at === null ? 'active' : 'neutral',
    } as const,
    ...interruptionOf(attempt),
  ])
  if (run.finished_at === null) return [queued, ...tried]
  const last = { ...(ENDS[run.status] ?? FAILED), at: run.finished_at, during: undefined }
  return [queued, ...tried, last]
}

const FAILED = { label: 'Failed', tone: 'danger' } as const
const ENDS: Partial<Record<LocalStatus, Pick<Moment, 'label' | 'tone'>>> = {
  succeeded: { label: 'Succeeded', tone: 'success' },
  canceled: { label: 'Canceled', tone: 'neutral' },
}

/** Attempts of the run. If none are recorded, makes one from the run's start time. */
const attemptsOf = ({ attempts, started_at, finished_at }: RunDetails): readonly RunAttempt[] =>
  attempts.length > 0 || started_at === null
    ? attempts
    : [{ started_at, ended_at: finished_at, result: null }]

/** Timeline entry for an attempt that ended without finishing the run. */
function interruptionOf({ ended_at, result }: RunAttempt): readonly Moment[] {
  if (ended_at === null) return []
  const during = 'in the queue'
  if (result === 'crashed') return [{ label: 'The renderer crashed', at: ended_at, during, tone: 'danger' }]
  if (result === 'returned')
    return [{ label: 'Returned to the queue: the worker shut down', at: ended_at, during, tone: 'neutral' }]
  return []
}

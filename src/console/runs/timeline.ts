/** The moments of a run: queued, started, and its end. Pure. */
import type { RunDetails } from '../../protocol/console.js'
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
  const { created_at, started_at, finished_at, status } = run
  const moments: Moment[] = [{ label: 'Queued', at: created_at, during: 'in the queue', tone: 'neutral' }]
  if (started_at !== null)
    moments.push({
      label: 'Started',
      at: started_at,
      during: 'rendering',
      tone: finished_at === null ? 'active' : 'neutral',
    })
  if (finished_at !== null) moments.push({ ...(ENDS[status] ?? FAILED), at: finished_at, during: undefined })
  return moments
}

const FAILED = { label: 'Failed', tone: 'danger' } as const
const ENDS: Partial<Record<LocalStatus, Pick<Moment, 'label' | 'tone'>>> = {
  succeeded: { label: 'Succeeded', tone: 'success' },
  canceled: { label: 'Canceled', tone: 'neutral' },
}

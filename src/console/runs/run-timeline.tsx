import { useEffect, useState } from 'preact/hooks'
import type { RunDetails } from '../../protocol/console.js'
import { formatDuration, formatTime } from '../format.js'
import { isFinished } from './run-list.js'
import { timelineOf } from './timeline.js'

const TICK_MS = 1_000

export function RunTimeline({ run }: { readonly run: RunDetails }) {
  const [now, setNow] = useState(Date.now)
  const isLive = !isFinished(run)
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [isLive])
  return (
    <ol class="timeline">
      {timelineOf(run, now).map((entry, index) => (
        <li key={index} class={`timeline-entry timeline-${entry.tone}`}>
          <span class="timeline-label">{entry.label}</span>
          <time dateTime={entry.at}>{formatTime(entry.at)}</time>
          {entry.durationMs !== undefined && (
            <span class="timeline-duration">
              {formatDuration(entry.durationMs)} {entry.during}
            </span>
          )}
        </li>
      ))}
    </ol>
  )
}

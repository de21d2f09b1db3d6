/** Progress of an unfinished run, with the elapsed time. */
import type { RunDetails } from '../../protocol/console.js'
import { progressText, withProgress } from '../../protocol/run-state.js'
import { useSeconds } from '../components/time.js'
import { formatWholeSeconds } from '../format.js'
import { timelineOf } from './timeline.js'

export function WaitingRun({ run }: { readonly run: RunDetails }) {
  const now = useSeconds(true)
  const { progress, status } = run
  return (
    <div class="run-waiting">
      <span class="spinner" />
      <p>
        <strong role="status">
          {status === 'queued' ? 'Waiting in the queue' : withProgress('Rendering', progressText(run))}
        </strong>{' '}
        {/* Not in the status, which screen readers would announce every second. */}
        <span class="waiting-time" role="timer">
          · {formatWholeSeconds(timelineOf(run, now).at(-1)?.durationMs ?? 0)}
        </span>
      </p>
      {typeof progress === 'number' && (
        <span class="meter-bar" aria-hidden="true">
          <span style={{ width: `${progress * 100}%` }} />
        </span>
      )}
      <p class="muted">Your result will appear here.</p>
    </div>
  )
}

/** Progress of an unfinished run, with the elapsed and the usual time. */
import { CONSOLE_PATHS, type RunDetails, type RunsPage } from '../../protocol/console.js'
import { MAX_RUNS, type TypicalDuration, typicalDurationOf } from '../../protocol/typical-duration.js'
import { request } from '../api.js'
import { useSeconds } from '../components/time.js'
import { formatUsual, formatWholeSeconds } from '../format.js'
import { useResource } from '../resource.js'
import { progressSuffix } from './run-details.js'
import { timelineOf } from './timeline.js'

export function WaitingRun({ run }: { readonly run: RunDetails }) {
  const now = useSeconds(true)
  const { data } = useResource((signal) => readTypical(run.model, signal), [run.model])
  const range = data?.typical
  const isQueued = run.status === 'queued'
  const { progress } = run
  return (
    <div class="run-waiting">
      <span class="spinner" />
      <p>
        <strong role="status">{isQueued ? 'Waiting in the queue' : `Rendering${progressSuffix(run)}`}</strong>{' '}
        {/* Not in the status, which screen readers would announce every second. */}
        <span class="waiting-time" role="timer">
          · {formatWholeSeconds(timelineOf(run, now).at(-1)?.durationMs ?? 0)}
          {!isQueued && range !== undefined && ` · ${formatUsual(range)}`}
        </span>
      </p>
      {typeof progress === 'number' && (
        <span class="meter-bar" aria-hidden="true">
          <span style={{ width: `${progress * 100}%` }} />
        </span>
      )}
      <p class="muted">
        {isQueued && range !== undefined && `Rendering ${formatUsual(range, 'takes')}. `}
        Your result will appear here.
      </p>
    </div>
  )
}

/** The latest succeeded runs of the model, of this account. */
async function readTypical(
  model: string,
  signal: AbortSignal,
): Promise<{ readonly typical: TypicalDuration | undefined }> {
  const query = { model, status: 'succeeded', limit: MAX_RUNS }
  const { runs } = await request<RunsPage>('GET', CONSOLE_PATHS.runs, { query, signal })
  const tookMs = runs.map((run) => Date.parse(run.finished_at ?? '') - Date.parse(run.started_at ?? ''))
  return { typical: typicalDurationOf(tookMs.filter((ms) => ms >= 0)) }
}

/** Shows a run's fields, timeline and status. */
import type { ComponentChildren } from 'preact'
import type { RunDetails, RunSummary } from '../../protocol/console.js'
import type { ModelDocument } from '../../protocol/models.js'
import { defaultsOf } from '../../protocol/price.js'
import { type LocalStatus, progressText, withProgress } from '../../protocol/run-state.js'
import { printable, printableJson } from '../../protocol/text.js'
import { Badge, type Tone } from '../components/notice.js'
import { Card } from '../components/page.js'
import { useSeconds } from '../components/time.js'
import { formatCredits, formatDuration, formatFullTime, formatTime, formatWholeSeconds } from '../format.js'
import { linkTo } from '../routes.js'
import { labelOf, SOURCES } from './form-fields.js'
import { isFinished } from './run-list.js'

export interface ShownRun {
  readonly run: RunDetails
  /** Document of the run's model; undefined if the service no longer has it, or before it is read. */
  readonly document: ModelDocument | undefined
}

/** The run's fields, then its timeline. */
export function RunDetailsCard(shown: ShownRun) {
  return (
    <Card title="Details">
      <RunFields {...shown} />
      <Timeline run={shown.run} />
    </Card>
  )
}

function RunFields({ run, document }: ShownRun) {
  const { key, input } = run
  const parameters = Object.entries(input ?? {}).filter(([name]) => name !== 'prompt' && name !== SOURCES)
  const defaults = Object.entries(document === undefined ? {} : defaultsOf(document.input)).filter(
    ([name]) => !Object.hasOwn(input ?? {}, name),
  )
  return (
    <dl class="run-fields">
      {parameters.map(([name, value]) => (
        <FieldRow key={name} name={printable(labelOf(name))}>
          <bdi>{shownValue(value)}</bdi>
        </FieldRow>
      ))}
      {defaults.map(([name, value]) => (
        <FieldRow key={name} name={labelOf(name)}>
          <bdi>{shownValue(value)}</bdi> <span class="muted">default</span>
        </FieldRow>
      ))}
      <FieldRow name="Price">
        {formatCredits(run.price)}
        {run.is_refunded && ', refunded'}
      </FieldRow>
      {run.crashes > 0 && <FieldRow name="Crashes">{run.crashes}</FieldRow>}
      <FieldRow name="API key">
        {key ? (
          <a href={linkTo('runs', { query: { key: key.id } })} title="Runs of this key">
            <bdi>{printable(key.name)}</bdi>
          </a>
        ) : (
          'None (created in the console)'
        )}
      </FieldRow>
    </dl>
  )
}

const shownValue = (value: unknown): string =>
  printable(typeof value === 'string' ? value : printableJson(value))

function FieldRow({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Shorter durations would be shown as 0.0 s. */
const MIN_SHOWN_MS = 50

function Timeline({ run }: { readonly run: RunDetails }) {
  const now = useSeconds(!isFinished(run))
  return (
    <ol class="timeline">
      {timelineOf(run, now).map((entry, index) => (
        <li key={index} class={`timeline-entry timeline-${entry.tone}`}>
          <span class="timeline-label">{entry.label}</span>
          <time dateTime={entry.at} title={formatFullTime(entry.at)}>
            {formatTime(entry.at)}
          </time>
          {entry.durationMs !== undefined && entry.durationMs >= MIN_SHOWN_MS && (
            <span class="timeline-duration">
              {formatDuration(entry.durationMs)} {entry.during}
            </span>
          )}
        </li>
      ))}
    </ol>
  )
}

const TONES: Readonly<Record<LocalStatus, Tone>> = {
  queued: 'neutral',
  processing: 'accent',
  succeeded: 'good',
  failed: 'bad',
  canceled: 'neutral',
}

/** Shows the status with its name in the API, and the progress. */
export function RunStatus({ run }: { readonly run: RunSummary }) {
  const { status } = run
  return (
    <Badge tone={TONES[status] ?? 'neutral'}>
      <span class={`status-dot status-${status}`} aria-hidden="true" />
      {withProgress(status, progressText(run))}
    </Badge>
  )
}

/** Progress of an unfinished run, with the elapsed time. */
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

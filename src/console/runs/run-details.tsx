/** Shows a run's fields, timeline and status. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RunAttempt, RunDetails, RunSummary } from '../../protocol/console.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isSentImage } from '../../protocol/parameters.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { defaultsOf } from '../../protocol/price.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import { printable, printableJson } from '../../protocol/text.js'
import { Badge, type Tone } from '../components/notice.js'
import { formatBytes, formatCredits, formatDuration, formatTime } from '../format.js'
import { linkTo } from '../routes.js'
import { labelOf, SOURCES } from './form-fields.js'
import { isFinished } from './run-list.js'

export interface ShownRun {
  readonly run: RunDetails
  /** Document of the run's model; undefined if the service no longer has it, or before it is read. */
  readonly document: ModelDocument | undefined
}

export function RunFields({ run, document }: ShownRun) {
  const { key, input } = run
  const parameters = Object.entries(input ?? {}).filter(([name]) => name !== 'prompt' && name !== SOURCES)
  const defaults = Object.entries(document === undefined ? {} : defaultsOf(document)).filter(
    ([name]) => !Object.hasOwn(input ?? {}, name),
  )
  const sources = Array.isArray(input?.[SOURCES]) ? (input[SOURCES] as readonly unknown[]) : []
  return (
    <dl class="run-fields">
      <FieldRow name="Model">
        <a href={linkTo('runs', { query: { model: run.model } })} title="Runs of this model">
          <bdi>{printable(run.model)}</bdi>
        </a>
      </FieldRow>
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
      {sources.length > 0 && (
        <FieldRow name="Reference images">
          <ol class="run-sources">
            {sources.map((source, index) => (
              <li key={index}>
                <SourceText source={source} />
              </li>
            ))}
          </ol>
        </FieldRow>
      )}
      <FieldRow name="Price">{formatCredits(run.price)}</FieldRow>
      <FieldRow name="API key">
        {key ? (
          <a href={linkTo('runs', { query: { key: key.id } })} title="Runs of this key">
            <bdi>{printable(key.name)}</bdi>
          </a>
        ) : (
          'None: created in the console, or with --local'
        )}
      </FieldRow>
      <FieldRow name="Created">{formatTime(run.created_at)}</FieldRow>
      <FieldRow name="Started">{formatTime(run.started_at)}</FieldRow>
      <FieldRow name="Finished">{formatTime(run.finished_at)}</FieldRow>
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

function SourceText({ source }: { readonly source: unknown }) {
  if (isSentImage(source))
    return (
      <>
        Sent with the run: {printable(source.content_type)}, {formatBytes(source.bytes)}
      </>
    )
  const text = shownValue(source)
  if (!isHttpUrl(source)) return <bdi>{text}</bdi>
  return (
    <a href={source} target="_blank" rel="noreferrer noopener">
      <bdi>{text}</bdi>
    </a>
  )
}

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
  const isGood = run.status === 'succeeded'
  const last = { label: isGood ? 'Succeeded' : 'Failed', at: run.finished_at, during: undefined } as const
  return [queued, ...tried, { ...last, tone: isGood ? 'success' : 'danger' }]
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

const TONES: Readonly<Record<LocalStatus, Tone>> = {
  queued: 'neutral',
  processing: 'accent',
  succeeded: 'good',
  failed: 'bad',
}

/** Text after the state of a run that is being rendered: ", 40 %". Empty if its progress is not known. */
export const progressText = ({ progress }: Pick<RunSummary, 'progress'>): string =>
  typeof progress === 'number' ? `, ${Math.floor(progress * 100)} %` : ''

/** Shows the status with its name in the API, and the progress. */
export function RunStatus({ run }: { readonly run: Pick<RunSummary, 'status' | 'progress'> }) {
  const { status } = run
  return (
    <Badge tone={TONES[status] ?? 'neutral'}>
      <span class={`status-dot status-${status}`} aria-hidden="true" />
      {`${status}${progressText(run)}`}
    </Badge>
  )
}

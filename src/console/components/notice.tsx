/** Notices, errors, empty states, loading states and badges. */
import type { ComponentChildren } from 'preact'
import { messageOf } from '../api.js'
import type { Polling } from '../polling.js'
import type { Resource } from '../resource.js'
import { Button } from './button.js'
import { Icon, type IconName } from './icon.js'

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent'

const TONE_ICONS: Readonly<Record<Tone, IconName>> = {
  neutral: 'info',
  accent: 'info',
  good: 'check',
  warn: 'alert',
  bad: 'alert',
}

export interface NoticeProps {
  readonly tone?: Tone
  readonly title?: string
  readonly children?: ComponentChildren
  readonly action?: ComponentChildren
}

/** Notice box. Screen readers announce an error immediately. */
export function Notice({ tone = 'neutral', title, children, action }: NoticeProps) {
  return (
    <div class={`notice notice-${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={TONE_ICONS[tone]} />
      <div class="notice-text">
        {title !== undefined && <strong>{title}</strong>}
        {children !== undefined && <div>{children}</div>}
      </div>
      {action}
    </div>
  )
}

interface ErrorNoticeProps {
  /** Undefined shows nothing. */
  readonly error: unknown
  readonly onRetry?: () => void
}

/** Notice for a request that failed. */
export function ErrorNotice({ error, onRetry }: ErrorNoticeProps) {
  if (error === undefined) return null
  return (
    <Notice tone="bad" action={onRetry && <RetryButton onClick={onRetry} />}>
      {messageOf(error)}
    </Notice>
  )
}

export interface RetryButtonProps {
  readonly label?: string
  readonly onClick: () => void
}

export function RetryButton({ label = 'Try again', onClick }: RetryButtonProps) {
  return (
    <Button size="small" icon="rotate" onClick={onClick}>
      {label}
    </Button>
  )
}

export interface EmptyStateProps {
  readonly icon: IconName
  readonly title: string
  /** What the user can do next. */
  readonly children?: ComponentChildren
  readonly action?: ComponentChildren
}

export function EmptyState({ icon, title, children, action }: EmptyStateProps) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={22} />
      </span>
      <h2>{title}</h2>
      {children !== undefined && <div class="empty-text">{children}</div>}
      {action}
    </div>
  )
}

export interface SkeletonProps {
  /** CSS width, such as `8rem` or `60%`. */
  readonly width?: string
  readonly height?: string
}

export function Skeleton({ width = '100%', height = '0.9em' }: SkeletonProps) {
  return <span class="skeleton" style={{ width, height }} aria-hidden="true" />
}

/** Placeholder lines for text that is loading. Screen readers announce "Loading". */
export function SkeletonLines({ count = 3 }: { readonly count?: number }) {
  return (
    <div class="skeleton-lines">
      <span class="visually-hidden" role="status">
        Loading
      </span>
      {Array.from({ length: count }, (_, at) => (
        <Skeleton key={at} width={`${[92, 76, 84, 60][at % 4]}%`} height="1rem" />
      ))}
    </div>
  )
}

/** Notice for polls that failed and are retried. */
export function PollingNotice({ error, retry }: Polling) {
  return (
    <div role="status">
      {error !== undefined && (
        <Notice
          tone="warn"
          title="Live updates are interrupted. Trying again."
          action={<RetryButton label="Try now" onClick={retry} />}
        >
          {messageOf(error)}
        </Notice>
      )}
    </div>
  )
}

interface LoadedProps<Data> extends Resource<Data> {
  /** Shown until the first response. */
  readonly placeholder?: ComponentChildren
  readonly children: (data: Data) => ComponentChildren
}

/** Data of the service, below the error of the last request. */
export function Loaded<Data>(props: LoadedProps<Data>) {
  const { data, error, reload, placeholder = <SkeletonLines />, children } = props
  return (
    <>
      <ErrorNotice error={error} onRetry={reload} />
      {data !== undefined ? children(data) : error === undefined && placeholder}
    </>
  )
}

export function Badge({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}) {
  return <span class={`badge badge-${tone}`}>{children}</span>
}

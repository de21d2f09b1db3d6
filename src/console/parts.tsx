/**
 * Small parts that several pages use, and a run as they show it. The service fills it in; the pages know nothing of its
 * store.
 */
import type { ComponentChildren } from 'preact'
import type { Kind } from '../protocol/models.js'
import type { LocalStatus } from '../protocol/run-state.js'
import { timeText } from './format.js'

/** Line icons on a 24 × 24 grid, in the text colour. Decorative: always beside a text or a label. */
const PATHS = {
  runs: 'M3 4h18v16H3zM7.5 4v16M16.5 4v16M3 12h18M3 8h4.5M3 16h4.5M16.5 8H21M16.5 16H21',
  plus: 'M12 5v14M5 12h14',
  key: 'M13 15.5a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM11.4 11.6L21 2M15.5 7.5l3 3L22 7l-3-3',
  credits: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM18.1 10.4A6 6 0 1 1 10.3 18M7 6h1v4',
  user: 'M16.5 7.5a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM4 21a8 8 0 0 1 16 0',
  alert: 'M12 4L2.5 20h19zM12 10v4.5M12 17.3v.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8v.01',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20',
  download: 'M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14',
  upload: 'M12 15V4.5M7.5 9L12 4.5 16.5 9M5 20h14',
  play: 'M7 4.5v15l12-7.5z',
  image: 'M4 4.5h16v15H4zM4 16l5-5 4.5 4.5 2.5-2.5 4 4M15.5 9v.01',
  video: 'M3 6h12v12H3zM15 10.5l6-3.5v10l-6-3.5',
  list: 'M4 6h16M4 12h16M4 18h16',
  grid: 'M4 4h16v16H4zM12 4v16M4 12h16',
} as const
export type IconName = keyof typeof PATHS

export const Icon = ({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) => (
  <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)

export const Badge = ({ run: { status, progress } }: { readonly run: ShownRun }) => (
  <span class={`badge ${status}`}>{progress === undefined ? status : `${status}, ${progress} %`}</span>
)

/** In UTC; the script of the pages shows it as on the clock of the user. */
export const Time = ({ ms }: { readonly ms: number }) => (
  <time datetime={new Date(ms).toISOString()}>{timeText(ms)}</time>
)

interface NoticeProps {
  readonly tone: 'bad' | 'info' | 'good'
  readonly title: string
  readonly children?: ComponentChildren
}
export const Notice = ({ tone, title, children }: NoticeProps) => (
  <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
    <Icon name={tone === 'bad' ? 'alert' : 'info'} />
    <div>
      <strong class="wrap">{title}</strong>
      {children}
    </div>
  </div>
)

interface SelectProps {
  readonly name: string
  readonly label: string
  /** Values with their labels. */
  readonly choices: readonly (readonly [value: string, label: string])[]
  readonly chosen?: string | undefined
}
export const Select = ({ name, label, choices, chosen = '' }: SelectProps) => (
  <select name={name} aria-label={label}>
    {choices.map(([value, label]) => (
      <option key={value} value={value} selected={value === chosen}>
        {label}
      </option>
    ))}
  </select>
)

interface FieldProps {
  readonly id: string
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  readonly children: ComponentChildren
}
export const Field = ({ id, label, hint, problem, children }: FieldProps) => (
  <div class="field">
    <label for={id}>{label}</label>
    {children}
    {hint && <small>{hint}</small>}
    <Problem id={id} text={problem} />
  </div>
)

type InputProps = Omit<FieldProps, 'id' | 'children'> & {
  readonly name: string
  readonly [attribute: string]: unknown
}
/** A field for one line of text. */
export const Input = ({ name, label, hint, problem, ...attributes }: InputProps) => (
  <Field id={name} label={label} hint={hint} problem={problem}>
    <input id={name} name={name} {...invalid(name, problem)} {...attributes} />
  </Field>
)

/** Attributes of a field with a problem. */
export const invalid = (id: string, problem: string | undefined) =>
  problem === undefined ? {} : { 'aria-invalid': true, 'aria-describedby': `problem-${id}` }

export const Problem = ({ id, text }: { readonly id: string; readonly text: string | undefined }) =>
  text === undefined ? null : (
    <p id={`problem-${id}`} class="problem">
      {text}
    </p>
  )

interface TableProps {
  readonly label: string
  readonly head: readonly string[]
  /** Names of the columns with numbers. */
  readonly right: readonly string[]
  /** The rows. */
  readonly children: ComponentChildren
}
/** A table that can scroll, and therefore has a name and can be focused. */
export const Table = ({ label, head, right, children }: TableProps) => (
  <div class="card scroll" tabIndex={0} role="region" aria-label={label}>
    <table class="plain">
      <thead>
        <tr>
          {head.map((name) => (
            <th key={name} class={right.includes(name) ? 'right' : undefined}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
)

interface PostButtonProps {
  readonly action: string
  readonly label?: string
  readonly class?: string
  readonly children: ComponentChildren
}
/** A form with one button. */
export const PostButton = ({ action, label, class: kind = 'button small', children }: PostButtonProps) => (
  <form method="post" action={action}>
    <button type="submit" class={kind} aria-label={label}>
      {children}
    </button>
  </form>
)

export interface ShownOutput {
  /** Path at the service. */
  readonly url: string
  readonly name: string
  readonly contentType: string
  readonly bytes: number
  /** Name for a browser that saves the file. */
  readonly savedName: string
}

export interface ShownRun {
  readonly id: string
  readonly kind: Kind
  readonly model: string
  readonly status: LocalStatus
  /** Changes with everything of the run that a row shows. */
  readonly version: string
  /** The first 1,000 characters of the prompt. */
  readonly prompt: string
  /** Width and height of its outputs, as they were asked for. */
  readonly ratio: readonly [number, number]
  /** Name of the API key. Undefined for a run without one. */
  readonly key: string | undefined
  readonly price: number
  readonly isRefunded: boolean
  readonly failure: { readonly code: string; readonly message: string } | undefined
  /** In percent; undefined if the engine reports none. */
  readonly progress: number | undefined
  /** Number of jobs before it at the server of its model. */
  readonly queuePosition: number | undefined
  readonly outputs: readonly ShownOutput[]
  /** Whether the files of its outputs were deleted. */
  readonly isRemoved: boolean
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  readonly finishedAtMs: number | undefined
}

/** Whether the run can still change. */
export const isUnderWay = ({ status }: ShownRun): boolean => status === 'queued' || status === 'processing'

export interface KeyChoice {
  readonly id: number
  readonly name: string
}

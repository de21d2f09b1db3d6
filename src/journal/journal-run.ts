/** The rows of the journal as values. */
import type { Row } from '../host/database.js'

/**
 * ```
 * sending ──► going ──► succeeded
 *   │  │        └─────► failed
 *   │  └─► unconfirmed              the outcome is unknown, or the process ended
 *   └─► (no row)                    certainly not accepted
 * ```
 */
export type JournalPhase = 'sending' | 'unconfirmed' | 'going' | 'succeeded' | 'failed'

export interface JournalFile {
  /** Absolute. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  readonly url: string
  readonly content_type: string
}

export interface JournalRun {
  readonly row: number
  /** `~` and hexadecimal digits; undefined once there is an id. */
  readonly key: string | undefined
  readonly id: string | undefined
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  /** As it was sent; data: URLs as `{sha256, bytes, content_type}`. */
  readonly input: unknown
  readonly phase: JournalPhase
  readonly status: string
  /** Wall clock, milliseconds: when it was about to be sent. */
  readonly createdAtMs: number
  readonly finishedAtMs: number | undefined
  readonly elapsedMs: number | undefined
  /** The latest links to the outputs; they may have expired. */
  readonly urls: readonly string[]
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** The response that did not tell the outcome. */
  readonly answer: { readonly status: number | undefined; readonly text: string | undefined } | undefined
  /** The client's own name for the create. */
  readonly requestId: string | undefined
}

/** The newest row of an id: a service may use an id twice. */
export const FIND = 'SELECT * FROM runs WHERE address = ? AND id = ? ORDER BY row DESC LIMIT 1'

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

const parsed = (value: unknown): unknown => {
  try {
    return JSON.parse(text(value) ?? 'null')
  } catch {
    return null
  }
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

export function runOfRow(row: Row): JournalRun {
  const code = text(row.error_code)
  const [answerStatus, answer] = [number(row.answer_status), text(row.answer)]
  return {
    row: Number(row.row),
    key: text(row.key),
    id: text(row.id),
    address: text(row.address) ?? '',
    profile: text(row.profile) ?? '',
    kind: text(row.kind),
    model: text(row.model) ?? '',
    input: parsed(row.input),
    phase: text(row.phase) as JournalPhase,
    status: text(row.status) ?? '',
    createdAtMs: Number(row.created_at),
    finishedAtMs: number(row.finished_at),
    elapsedMs: number(row.elapsed_ms),
    urls: textsOf(parsed(row.urls)),
    error: code === undefined ? undefined : { code, message: text(row.error_message) ?? '' },
    answer:
      answerStatus === undefined && answer === undefined ? undefined : { status: answerStatus, text: answer },
    requestId: text(row.request_id),
  }
}

export const fileOfRow = (row: Row): JournalFile => ({
  path: text(row.path) ?? '',
  bytes: Number(row.bytes),
  sha256: text(row.sha256) ?? '',
  url: text(row.url) ?? '',
  content_type: text(row.content_type) ?? '',
})

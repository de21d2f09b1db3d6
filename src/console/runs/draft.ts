/**
 * What the form of a new run has, and what became of sending it. Pure. A request has an id for as long as the content is the one that was
 * sent: sent again with it, the service answers with the run that it has created already, and nothing is paid twice.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import { isHttpUrl, isObject, parseJson } from '../../protocol/parse.js'
import { inputOf, type Values } from './form.js'
import type { Reference } from './reference-list.js'

/** A request that is in progress, or whose outcome is not known. */
export interface Attempt {
  /** Undefined when the content has changed since it was sent. */
  readonly id: string | undefined
  readonly model: string
  /** When the id was sent first. */
  readonly sentAtMs: number
  /** The one before it, until this one is answered. */
  readonly before?: Attempt | undefined
}

export interface Draft {
  readonly kind: Kind
  readonly values: Values
  readonly references: readonly Reference[]
  readonly attempt?: Attempt | undefined
  /** Of its images, how many are being read from files. */
  readonly reading: number
  /** Different for each draft of a form; 0 before it is changed. */
  readonly number: number
}

export const EMPTY_DRAFT: Draft = { kind: 'image', values: {}, references: [], reading: 0, number: 0 }

export type Content = Pick<Draft, 'kind' | 'values' | 'references'>

const withoutId = (attempt: Attempt): Attempt => ({
  ...attempt,
  id: undefined,
  before: attempt.before && withoutId(attempt.before),
})

export const withContent = (draft: Draft, content: Partial<Content>): Draft => ({
  ...draft,
  ...content,
  attempt: draft.attempt && withoutId(draft.attempt),
})

export const createBody = ({ kind, values, references }: Content, model: string): object => ({
  model,
  input: inputOf(
    kind,
    values,
    references.map(({ source }) => source),
  ),
})

/** The service knows an id for 24 hours; one less, since clocks differ and requests take time. */
const RESEND_MS = 23 * 3_600_000

/** Whether sending it again pays for one run at most. */
export const canResend = ({ attempt }: Draft, model: string, nowMs: number): boolean =>
  attempt?.id !== undefined && attempt.model === model && nowMs - attempt.sentAtMs < RESEND_MS

export interface Sending {
  readonly model: string
  readonly nowMs: number
  readonly newId: () => string
}

/** As it is sent: with an id, the one of before when it can be sent again. */
export function withAttempt(draft: Draft, { model, nowMs, newId }: Sending): Draft & { attempt: Attempt } {
  const { attempt: last } = draft
  const before = last && { ...last, before: undefined }
  const attempt =
    before !== undefined && canResend(draft, model, nowMs)
      ? { ...before, before }
      : { id: newId(), model, sentAtMs: nowMs, before: before && withoutId(before) }
  return { ...draft, attempt }
}

/** The request has created a run: undefined when the draft has done its work, and not when it was changed meanwhile. */
export const afterCreate = (draft: Draft, id: string): Draft | undefined =>
  draft.attempt?.id === id ? undefined : { ...draft, attempt: undefined }

/**
 * The request was refused for sure. That of before may still have been accepted. `isIdOver`: the id cannot be sent again, since the service
 * knows it from another request.
 */
export const afterRefusal = (draft: Draft, isIdOver = false): Draft => {
  const before = draft.attempt?.before
  return { ...draft, attempt: before && isIdOver ? withoutId(before) : before }
}

/** As it is kept for a reload of the page: of its images, those that are URLs. */
export const draftText = ({ kind, values, references, attempt }: Draft, owner: string): string => {
  const urls = references.filter(({ isUrl }) => isUrl).map(({ source }) => source)
  const isWhole = urls.length === references.length
  const kept = attempt && { ...(isWhole ? attempt : withoutId(attempt)), before: undefined }
  return JSON.stringify({ kind, values, urls, attempt: kept, owner })
}

export interface KeptDraft extends Omit<Draft, 'references'> {
  readonly urls: readonly string[]
}

/** `owner`: whose it is. A draft of somebody else in the same browser is not shown. */
export function draftOf(text: string | null, owner: string): KeptDraft | undefined {
  const parsed = text === null ? undefined : parseJson(text)
  if (parsed?.ok !== true || !isObject(parsed.value)) return undefined
  const { kind, values, urls, attempt, owner: keptOwner } = parsed.value
  const known = KINDS.find((each) => each === kind)
  if (known === undefined || keptOwner !== owner || !isObject(values)) return undefined
  const texts = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  const { reading, number } = EMPTY_DRAFT
  return {
    ...{ kind: known, values: Object.fromEntries(texts), reading, number },
    urls: Array.isArray(urls) ? urls.filter(isHttpUrl) : [],
    attempt: attemptOf(attempt),
  }
}

function attemptOf(kept: unknown): Attempt | undefined {
  if (!isObject(kept)) return undefined
  const { id, model, sentAtMs } = kept
  if (typeof model !== 'string' || typeof sentAtMs !== 'number') return undefined
  return { id: typeof id === 'string' ? id : undefined, model, sentAtMs }
}

/**
 * The drafts of new runs, by the name of their form. They outlive the form, so that a create or a file that is being read
 * changes the draft it belongs to. The tab stores them, without images from files, until the run is created or the user signs
 * out. While its content is unchanged, a request keeps its id: the service answers a second one with the same run, so that
 * nothing is paid twice.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import { isHttpUrl, isObject, parseJson } from '../../protocol/parse.js'
import { currentUser, isStartingOver } from '../api.js'
import { createStore, type SharedValue } from '../store.js'
import { inputOf, type Values } from './form-fields.js'
import { type Reference, referenceOfUrl } from './references.js'

/** A request in progress, or with an unknown outcome. */
export interface DraftRequest {
  /** Undefined when the content has changed since it was sent. */
  readonly id: string | undefined
  readonly model: string
  /** When the id was first sent. */
  readonly sentAtMs: number
  /** The previous one, until this one is answered. */
  readonly before?: DraftRequest | undefined
}

export interface Draft {
  readonly kind: Kind
  readonly values: Values
  readonly references: readonly Reference[]
  readonly attempt?: DraftRequest | undefined
  /** Number of images that are being read from files. */
  readonly reading: number
  /** Unique per draft of a form; 0 before the first change. */
  readonly number: number
}

export const EMPTY_DRAFT: Draft = { kind: 'image', values: {}, references: [], reading: 0, number: 0 }

export type DraftContent = Pick<Draft, 'kind' | 'values' | 'references'>

const withoutId = (attempt: DraftRequest): DraftRequest => ({
  ...attempt,
  id: undefined,
  before: attempt.before && withoutId(attempt.before),
})

export const withContent = (draft: Draft, content: Partial<DraftContent>): Draft => ({
  ...draft,
  ...content,
  attempt: draft.attempt && withoutId(draft.attempt),
})

export const createBody = ({ kind, values, references }: DraftContent, model: string): object => ({
  model,
  input: inputOf(
    kind,
    values,
    references.map(({ source }) => source),
  ),
})

/** The service keeps an id for 24 hours; minus one, since clocks differ and requests take time. */
const RESEND_MS = 23 * 3_600_000

/** Whether sending it again cannot pay twice. */
export const canResend = ({ attempt }: Draft, model: string, nowMs: number): boolean =>
  attempt?.id !== undefined && attempt.model === model && nowMs - attempt.sentAtMs < RESEND_MS

export interface SubmissionParts {
  readonly model: string
  readonly nowMs: number
  readonly newId: () => string
}

/** Gives the draft an id before it is sent: the previous one when it can be sent again. */
export function withAttempt(
  draft: Draft,
  { model, nowMs, newId }: SubmissionParts,
): Draft & { attempt: DraftRequest } {
  const { attempt: last } = draft
  const before = last && { ...last, before: undefined }
  const attempt =
    before !== undefined && canResend(draft, model, nowMs)
      ? { ...before, before }
      : { id: newId(), model, sentAtMs: nowMs, before: before && withoutId(before) }
  return { ...draft, attempt }
}

/** After a run was created: undefined, which removes the draft, unless it was changed meanwhile. */
export const afterCreate = (draft: Draft, id: string): Draft | undefined =>
  draft.attempt?.id === id ? undefined : { ...draft, attempt: undefined }

/**
 * After a refusal: the previous request may still have been accepted. `isIdOver`: the service knows the id from another
 * request.
 */
export const afterRefusal = (draft: Draft, isIdOver = false): Draft => {
  const before = draft.attempt?.before
  return { ...draft, attempt: before && isIdOver ? withoutId(before) : before }
}

/** The form that is not filled from a run. The others are named by the id of their run. */
export const NEW_RUN = 'new'

/** Keeps drafts over a reload. */
export interface DraftStorage {
  read(name: string): Draft | undefined
  /** `undefined` removes it. */
  write(name: string, draft: Draft | undefined): void
}

/** A form, with its content before the first change. */
export interface Form {
  readonly name: string
  readonly start: Draft
}

export interface Drafts {
  readonly store: SharedValue<ReadonlyMap<string, Draft>>
  /** Restores the draft after a reload. Returns whether there is one. */
  load(name: string): boolean
  forget(name: string): void
  edit(form: Form, change: (content: DraftContent) => Partial<DraftContent>): void
  /** Adds images when they have been read; false when their draft has been removed meanwhile. */
  addImages(form: Form, read: () => Promise<readonly Reference[]>): Promise<boolean>
  /** Creates a run of the current draft. `isChanged`: the draft was changed meanwhile, and is kept. */
  send<Created>(
    form: Form,
    parts: SendParts<Created>,
  ): Promise<{ readonly run: Created; readonly isChanged: boolean }>
}

export interface SendParts<Created> {
  readonly model: string
  readonly nowMs: number
  readonly newId: () => string
  request(draft: Draft, id: string): Promise<Created>
  /** Whether a run may have been created despite an error. */
  mayExist(error: unknown): boolean
  /** Whether the same request can never be accepted. */
  refusesInput(error: unknown): boolean
}

export function createDrafts(storage: DraftStorage): Drafts {
  const store = createStore<ReadonlyMap<string, Draft>>(new Map())
  let count = 0

  const put = (name: string, draft: Draft | undefined): void => {
    store.set((drafts) => {
      const others = new Map(drafts)
      if (draft === undefined) others.delete(name)
      else others.set(name, draft)
      return others
    })
    // After a sign-out nothing may be written.
    if (!isStartingOver()) storage.write(name, draft)
  }
  const change = ({ name, start }: Form, of: (draft: Draft) => Draft): Draft => {
    const changed = of(store.get().get(name) ?? { ...start, number: ++count })
    put(name, changed)
    return changed
  }
  /** Changes a draft unless it has been removed. */
  const changeLate = (name: string, { number }: Draft, of: (current: Draft) => Draft | undefined) => {
    const current = store.get().get(name)
    if (current?.number !== number) return false
    put(name, of(current))
    return true
  }

  return {
    store,
    load(name) {
      if (store.get().has(name)) return true
      const saved = storage.read(name)
      if (saved !== undefined) store.set((drafts) => new Map(drafts).set(name, { ...saved, number: ++count }))
      return saved !== undefined
    },
    forget: (name) => put(name, undefined),
    edit: (form, of) => void change(form, (draft) => withContent(draft, of(draft))),

    async addImages(form, read) {
      const begun = change(form, (draft) => ({ ...draft, reading: draft.reading + 1 }))
      const images = await read()
      return changeLate(form.name, begun, (current) => {
        const ended = { ...current, reading: current.reading - 1 }
        return images.length === 0
          ? ended
          : withContent(ended, { references: [...current.references, ...images] })
      })
    },

    async send(form, { request, mayExist, refusesInput, ...sending }) {
      const sent = change(form, (draft) => withAttempt(draft, sending))
      const { id } = sent.attempt ?? {}
      if (id === undefined) throw new Error('A request needs an id.')
      try {
        const run = await request(sent, id)
        changeLate(form.name, sent, (current) => afterCreate(current, id))
        return { run, isChanged: store.get().has(form.name) }
      } catch (error) {
        if (!mayExist(error))
          changeLate(form.name, sent, (current) => afterRefusal(current, refusesInput(error)))
        throw error
      }
    },
  }
}

/** The text for the storage, with those images that are URLs. */
export const draftText = ({ kind, values, references, attempt }: Draft, owner: string): string => {
  const urls = references.filter(({ isUrl }) => isUrl).map(({ source }) => source)
  const isWhole = urls.length === references.length
  const kept = attempt && { ...(isWhole ? attempt : withoutId(attempt)), before: undefined }
  return JSON.stringify({ kind, values, urls, attempt: kept, owner })
}

/** Undefined for a draft of another user. */
export function draftOf(text: string | null, owner: string): Draft | undefined {
  const parsed = text === null ? undefined : parseJson(text)
  if (parsed?.ok !== true || !isObject(parsed.value)) return undefined
  const { kind, values, urls, attempt, owner: savedOwner } = parsed.value
  const known = KINDS.find((each) => each === kind)
  if (known === undefined || savedOwner !== owner || !isObject(values)) return undefined
  const texts = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return {
    ...EMPTY_DRAFT,
    kind: known,
    values: Object.fromEntries(texts),
    references: Array.isArray(urls) ? urls.filter(isHttpUrl).map(referenceOfUrl) : [],
    attempt: attemptOf(attempt),
  }
}

function attemptOf(kept: unknown): DraftRequest | undefined {
  if (!isObject(kept)) return undefined
  const { id, model, sentAtMs } = kept
  if (typeof model !== 'string' || typeof sentAtMs !== 'number') return undefined
  return { id: typeof id === 'string' ? id : undefined, model, sentAtMs }
}

const PREFIX = 'rushes.new-run '
/** Each user of this tab has one draft for each form. */
const keyOf = (name: string): string => `${PREFIX}${currentUser() ?? ''}${name === NEW_RUN ? '' : ` ${name}`}`

export const drafts = createDrafts({
  read(name) {
    try {
      return draftOf(sessionStorage.getItem(keyOf(name)), currentUser() ?? '')
    } catch {
      // Storage can be turned off.
      return undefined
    }
  },
  write(name, draft) {
    try {
      // First, also for a replacement: if that does not fit, an older draft without its request would create a second run.
      sessionStorage.removeItem(keyOf(name))
      if (draft !== undefined) sessionStorage.setItem(keyOf(name), draftText(draft, currentUser() ?? ''))
    } catch {
      // Full or turned off: the draft lives until the page is closed.
    }
  },
})

/** Removes the drafts of all users of this tab. */
export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  } catch {
    // Storage can be turned off.
  }
}

/**
 * Drafts of new runs, by the name of their form. A draft outlives its form: a create or a file that is still being read
 * updates the correct draft. The tab stores drafts, without images from files, until the run is created or the user
 * signs out. A retry with unchanged content sends the same id. The service then returns the existing run, so the user
 * does not pay twice.
 */
import type { ModelDocument } from '../../protocol/models.js'
import { isHttpUrl, isObject, parseJson } from '../../protocol/parse.js'
import { currentUser, isStartingOver } from '../api.js'
import { createStore, type SharedValue } from '../store.js'
import { inputOf, type Values } from './form-fields.js'
import { type Reference, referenceOfUrl } from './references.js'

/** A create request that is in progress or has an unknown outcome. */
export interface DraftRequest {
  /** Idempotency key. Undefined if the content has changed since the request was sent. */
  readonly id: string | undefined
  readonly model: string
  /** Time at which the id was first sent. */
  readonly sentAtMs: number
  /** Previous request. Kept until this request gets a response. */
  readonly before?: DraftRequest | undefined
}

export interface Draft {
  /** Name of the selected model. Undefined: the service's default. */
  readonly model?: string | undefined
  readonly values: Values
  readonly references: readonly Reference[]
  readonly attempt?: DraftRequest | undefined
  /** Number of images that are being read from files. */
  readonly reading: number
  /** Unique number of the draft, to detect that it was removed or replaced; 0 before the first change. */
  readonly number: number
}

export const EMPTY_DRAFT: Draft = { values: {}, references: [], reading: 0, number: 0 }

export type DraftContent = Pick<Draft, 'model' | 'values' | 'references'>

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

export const createBody = ({ values, references }: DraftContent, document: ModelDocument): object => ({
  model: document.name,
  input: inputOf(
    document,
    values,
    references.map(({ source }) => source),
  ),
})

/** The service keeps an id for 24 hours. One hour less here, because clocks differ and requests take time. */
const RESEND_MS = 23 * 3_600_000

/** Returns true if the request can be sent again without the risk of paying twice. */
export const canResend = ({ attempt }: Draft, model: string, nowMs: number): boolean =>
  attempt?.id !== undefined && attempt.model === model && nowMs - attempt.sentAtMs < RESEND_MS

export interface SubmissionParts {
  readonly model: string
  readonly nowMs: number
  readonly newId: () => string
}

/** Adds a request to the draft before it is sent. Uses the previous id if that request can be sent again. */
export function withAttempt(
  draft: Draft,
  { model, nowMs, newId }: SubmissionParts,
): Draft & { attempt: DraftRequest } {
  const { attempt: previous } = draft
  const before = previous && { ...previous, before: undefined }
  const attempt =
    before !== undefined && canResend(draft, model, nowMs)
      ? { ...before, before }
      : { id: newId(), model, sentAtMs: nowMs, before: before && withoutId(before) }
  return { ...draft, attempt }
}

/**
 * Returns undefined (removes the draft) after its run was created. Keeps a draft that was changed during the request.
 */
export const afterCreate = (draft: Draft, id: string): Draft | undefined =>
  draft.attempt?.id === id ? undefined : { ...draft, attempt: undefined }

/**
 * Restores the previous request after the service rejected this one, because the previous request may have been
 * accepted. If `isIdOver`, drops its id: the service would reject this request every time, for example because it knows
 * the id from a different request.
 */
export const afterRefusal = (draft: Draft, isIdOver = false): Draft => {
  const before = draft.attempt?.before
  return { ...draft, attempt: before && isIdOver ? withoutId(before) : before }
}

/** Name of the empty form. A form filled from a run has the id of that run as its name. */
export const NEW_RUN = 'new'

/** Stores drafts so that they survive a reload. */
export interface DraftStorage {
  read(name: string): Draft | undefined
  /** If `draft` is undefined, removes the stored draft. */
  write(name: string, draft: Draft | undefined): void
}

/** A form and its initial content. */
export interface Form {
  readonly name: string
  readonly start: Draft
}

export interface Drafts {
  readonly store: SharedValue<ReadonlyMap<string, Draft>>
  /** Restores the draft after a reload. Returns false if there is no draft. */
  load(name: string): boolean
  forget(name: string): void
  edit(form: Form, change: (content: DraftContent) => Partial<DraftContent>): void
  /** Reads images and adds them to the draft. Resolves to false if the draft was removed before they were read. */
  addImages(form: Form, read: () => Promise<readonly Reference[]>): Promise<boolean>
  /** Creates a run from the draft. `isChanged` is true if the draft was changed during the request; it is then kept. */
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
  /** Returns true if the run may exist despite the error. */
  mayExist(error: unknown): boolean
  /** Returns true if the service will reject the same request every time. */
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
    // Do not write after a sign-out, which removes the stored drafts.
    if (!isStartingOver()) storage.write(name, draft)
  }
  const change = ({ name, start }: Form, edit: (draft: Draft) => Draft): Draft => {
    const changed = edit(store.get().get(name) ?? { ...start, number: ++count })
    put(name, changed)
    return changed
  }
  /** Changes a draft after a request. Returns false if the draft has been removed or replaced. */
  const changeIfCurrent = (name: string, { number }: Draft, edit: (current: Draft) => Draft | undefined) => {
    const current = store.get().get(name)
    if (current?.number !== number) return false
    put(name, edit(current))
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
    edit: (form, editContent) => void change(form, (draft) => withContent(draft, editContent(draft))),

    async addImages(form, read) {
      const reading = change(form, (draft) => ({ ...draft, reading: draft.reading + 1 }))
      const images = await read()
      return changeIfCurrent(form.name, reading, (current) => {
        const finished = { ...current, reading: current.reading - 1 }
        return images.length === 0
          ? finished
          : withContent(finished, { references: [...current.references, ...images] })
      })
    },

    async send(form, { request, mayExist, refusesInput, ...sending }) {
      const sent = change(form, (draft) => withAttempt(draft, sending))
      const { id } = sent.attempt ?? {}
      if (id === undefined) throw new Error('A request needs an id.')
      try {
        const run = await request(sent, id)
        changeIfCurrent(form.name, sent, (current) => afterCreate(current, id))
        return { run, isChanged: store.get().has(form.name) }
      } catch (error) {
        if (!mayExist(error))
          changeIfCurrent(form.name, sent, (current) => afterRefusal(current, refusesInput(error)))
        throw error
      }
    },
  }
}

/** Serializes a draft for the storage. Contains only images that are URLs, since files may be too large. */
export const draftText = ({ model, values, references, attempt }: Draft, owner: string): string => {
  const urls = references.filter(({ isUrl }) => isUrl).map(({ source }) => source)
  const isComplete = urls.length === references.length
  const kept = attempt && { ...(isComplete ? attempt : withoutId(attempt)), before: undefined }
  return JSON.stringify({ model, values, urls, attempt: kept, owner })
}

/** Parses a stored draft. Returns undefined if it is invalid or belongs to another user. */
export function draftOf(text: string | null, owner: string): Draft | undefined {
  const parsed = text === null ? undefined : parseJson(text)
  if (parsed?.ok !== true || !isObject(parsed.value)) return undefined
  const { model, values, urls, attempt, owner: savedOwner } = parsed.value
  if (savedOwner !== owner || !isObject(values)) return undefined
  const texts = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return {
    ...EMPTY_DRAFT,
    model: typeof model === 'string' ? model : undefined,
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
/** Storage key: one draft per user and form in this tab. */
const keyOf = (name: string): string => `${PREFIX}${currentUser() ?? ''}${name === NEW_RUN ? '' : ` ${name}`}`

export const drafts = createDrafts({
  read(name) {
    try {
      return draftOf(sessionStorage.getItem(keyOf(name)), currentUser() ?? '')
    } catch {
      // Throws if the user has disabled storage.
      return undefined
    }
  },
  write(name, draft) {
    try {
      // Remove the old draft first. If the new one does not fit, a reload must not restore the old draft without its
      // request: sending that would create a second run.
      sessionStorage.removeItem(keyOf(name))
      if (draft !== undefined) sessionStorage.setItem(keyOf(name), draftText(draft, currentUser() ?? ''))
    } catch {
      // The storage is full or disabled. The draft lasts until the page is closed.
    }
  },
})

/** Removes the stored drafts of all users of this tab. */
export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  } catch {
    // Throws if the user has disabled storage.
  }
}

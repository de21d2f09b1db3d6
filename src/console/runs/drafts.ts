/**
 * Drafts of new runs, by the name of their form. A draft outlives its form: a create or a file that is still being read
 * updates the correct draft. The tab stores drafts, without images from files, until the run is created or the user
 * signs out. A retry with unchanged content sends the same idempotency key. The service then returns the existing run,
 * so the user does not pay twice.
 */
import type { ModelDocument } from '../../protocol/models.js'
import { isHttpUrl, isObject, parseJson } from '../../protocol/parse.js'
import { currentUser, isStartingOver } from '../api.js'
import { createStore } from '../store.js'
import { inputOf, type Values } from './form-fields.js'
import { type Reference, referenceOfUrl } from './references.js'

export interface DraftContent {
  /** Name of the selected model. Undefined: the service's default. */
  readonly model?: string | undefined
  readonly values: Values
  readonly references: readonly Reference[]
}

export interface Draft extends DraftContent {
  /** Idempotency key of the content. Undefined before the first request with this content. */
  readonly key?: string | undefined
  /** Time at which the key was first sent. */
  readonly sentAtMs?: number | undefined
  /** True if a request is in progress or has an unknown outcome. */
  readonly mayExist: boolean
  /** Number of images that are being read from files. */
  readonly reading: number
  /** Unique number of the draft, to detect that it was removed or replaced; 0 before the first change. */
  readonly number: number
}

export const EMPTY_DRAFT: Draft = { values: {}, references: [], mayExist: false, reading: 0, number: 0 }

/** Other content is another request, with another key. */
export const withContent = (draft: Draft, content: Partial<DraftContent>): Draft => ({
  ...draft,
  ...content,
  key: undefined,
})

export const createBody = ({ values, references }: DraftContent, document: ModelDocument): object => ({
  model: document.name,
  input: inputOf(
    document,
    values,
    references.map(({ source }) => source),
  ),
})

/** The service keeps a key for 24 hours. One hour less here, because clocks differ and requests take time. */
const RESEND_MS = 23 * 3_600_000

/** Returns true if the request can be sent again without the risk of paying twice. */
export const canResend = ({ key, sentAtMs = 0 }: Draft, nowMs: number): boolean =>
  key !== undefined && nowMs - sentAtMs < RESEND_MS

/** Gives the draft its key before it is sent. Keeps the previous key if that request can be sent again. */
export const withKey = (
  draft: Draft,
  nowMs: number,
  newKey: () => string,
): Draft & { readonly key: string } =>
  draft.key !== undefined && canResend(draft, nowMs)
    ? { ...draft, key: draft.key }
    : { ...draft, key: newKey(), sentAtMs: nowMs }

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

export interface SendParts<Created> {
  readonly nowMs: number
  readonly newKey: () => string
  request(draft: Draft, key: string): Promise<Created>
  /** Returns true if the run may exist despite the error. */
  mayExist(error: unknown): boolean
  /** Returns true if the service will reject the same request every time. */
  refusesInput(error: unknown): boolean
}

export function createDrafts(storage: DraftStorage) {
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
  const change = <Changed extends Draft>({ name, start }: Form, edit: (draft: Draft) => Changed): Changed => {
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
    /** Restores the draft after a reload. Returns false if there is no draft. */
    load(name: string): boolean {
      if (store.get().has(name)) return true
      const saved = storage.read(name)
      if (saved !== undefined) store.set((drafts) => new Map(drafts).set(name, { ...saved, number: ++count }))
      return saved !== undefined
    },
    forget: (name: string): void => put(name, undefined),
    edit(form: Form, editContent: (content: DraftContent) => Partial<DraftContent>): void {
      change(form, (draft) => withContent(draft, editContent(draft)))
    },

    /** Reads images and adds them to the draft. Resolves to false if the draft was removed before they were read. */
    async addImages(form: Form, read: () => Promise<readonly Reference[]>): Promise<boolean> {
      const reading = change(form, (draft) => ({ ...draft, reading: draft.reading + 1 }))
      const images = await read()
      return changeIfCurrent(form.name, reading, (current) => {
        const finished = { ...current, reading: current.reading - 1 }
        return images.length === 0
          ? finished
          : withContent(finished, { references: [...current.references, ...images] })
      })
    },

    /** Creates a run from the draft. `isChanged`: the draft was changed during the request, and is therefore kept. */
    async send<Created>(form: Form, parts: SendParts<Created>) {
      const { request, mayExist, refusesInput, nowMs, newKey } = parts
      const before = store.get().get(form.name)?.mayExist ?? false
      const sent = change(form, (draft) => ({ ...withKey(draft, nowMs, newKey), mayExist: true }))
      try {
        const run = await request(sent, sent.key)
        // Removes the draft, unless it was changed during the request.
        changeIfCurrent(form.name, sent, (current) =>
          current.key === sent.key ? undefined : { ...current, mayExist: false },
        )
        return { run, isChanged: store.get().has(form.name) }
      } catch (error) {
        // An earlier request may have been accepted despite this refusal. The service refuses a key that it knows from
        // another request every time.
        if (!mayExist(error))
          changeIfCurrent(form.name, sent, (current) => ({
            ...current,
            mayExist: before,
            key: refusesInput(error) ? undefined : current.key,
          }))
        throw error
      }
    },
  }
}

/** Serializes a draft for the storage. Contains only images that are URLs, since files may be too large. */
export const draftText = (draft: Draft, owner: string): string => {
  const { model, values, references, key, sentAtMs, mayExist } = draft
  const urls = references.filter(({ isUrl }) => isUrl).map(({ source }) => source)
  const isComplete = urls.length === references.length
  return JSON.stringify({ model, values, urls, key: isComplete ? key : undefined, sentAtMs, mayExist, owner })
}

/** Parses a stored draft. Returns undefined if it is invalid or belongs to another user. */
export function draftOf(text: string | null, owner: string): Draft | undefined {
  const parsed = text === null ? undefined : parseJson(text)
  if (parsed?.ok !== true || !isObject(parsed.value)) return undefined
  const { model, values, urls, key, sentAtMs, mayExist, owner: savedOwner } = parsed.value
  if (savedOwner !== owner || !isObject(values)) return undefined
  const texts = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return {
    ...EMPTY_DRAFT,
    model: typeof model === 'string' ? model : undefined,
    values: Object.fromEntries(texts),
    references: Array.isArray(urls) ? urls.filter(isHttpUrl).map(referenceOfUrl) : [],
    // Without its time, a key may be too old to be sent again.
    ...(typeof key === 'string' && typeof sentAtMs === 'number' && { key, sentAtMs }),
    mayExist: mayExist === true,
  }
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

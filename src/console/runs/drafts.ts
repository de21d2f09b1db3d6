/**
 * The drafts of all forms, by the name of their form, for each user. They outlive the form: a create, or a file that is being read, ends in
 * the draft that it belongs to, or nowhere when that one is gone.
 */
import { createUserStore, currentUser, isKept, type User, type UserStore } from '../session-store.js'
import { afterCreate, afterRefusal, type Content, type Draft, withAttempt, withContent } from './draft.js'
import type { Reference } from './reference-list.js'

/** Of the form that is not filled from a run. The others have the id of their run. */
export const NEW_RUN = 'new'

/** Where a reload of the page finds them. */
export interface DraftKeeper {
  read(name: string, owner: string): Draft | undefined
  /** `undefined`: the draft is gone. */
  write(name: string, owner: string, draft: Draft | undefined): void
}

/** A form: its name, and what it has before it is changed. */
export interface Form {
  readonly name: string
  readonly start: Draft
}

export interface Drafts {
  readonly store: UserStore<ReadonlyMap<string, Draft>>
  /** Takes what was kept over a reload. Returns whether the form was changed before. */
  load(name: string): boolean
  forget(name: string): void
  edit(form: Form, change: (content: Content) => Partial<Content>): void
  /** Adds images when they have been read; false when their draft is gone by then. */
  addImages(form: Form, read: () => Promise<readonly Reference[]>): Promise<boolean>
  /** Creates a run of the draft of now. `isChanged`: it has been changed since, and is kept. */
  send<Run>(form: Form, parts: SendParts<Run>): Promise<{ readonly run: Run; readonly isChanged: boolean }>
}

export interface SendParts<Run> {
  readonly model: string
  readonly nowMs: number
  readonly newId: () => string
  request(draft: Draft, id: string): Promise<Run>
  /** Whether a run may have been created in spite of an error. */
  mayExist(error: unknown): boolean
  /** Whether the same request can never be accepted. */
  refusesInput(error: unknown): boolean
}

export function createDrafts(keeper: DraftKeeper): Drafts {
  const store = createUserStore<ReadonlyMap<string, Draft>>(new Map())
  let count = 0

  const put = (name: string, draft: Draft | undefined, user: User): void => {
    store.set((drafts) => {
      const others = new Map(drafts)
      if (draft === undefined) others.delete(name)
      else others.set(name, draft)
      return others
    }, user)
    // Nothing is left of a user who has signed out.
    if (isKept(user)) keeper.write(name, user.name, draft)
  }
  const change = ({ name, start }: Form, of: (draft: Draft) => Draft, user = currentUser()): Draft => {
    const changed = of(store.of(user).get(name) ?? { ...start, number: ++count })
    put(name, changed, user)
    return changed
  }
  /** Changes a draft, unless it is gone. */
  const changeLate = (name: string, { number }: Draft, of: (now: Draft) => Draft | undefined, user: User) => {
    const now = store.of(user).get(name)
    if (now?.number !== number) return false
    put(name, of(now), user)
    return true
  }

  return {
    store,
    load(name) {
      const { name: owner } = currentUser()
      if (store.get().has(name)) return true
      const kept = keeper.read(name, owner)
      if (kept !== undefined) store.set((drafts) => new Map(drafts).set(name, { ...kept, number: ++count }))
      return kept !== undefined
    },
    forget: (name) => put(name, undefined, currentUser()),
    edit: (form, of) => void change(form, (draft) => withContent(draft, of(draft))),

    async addImages(form, read) {
      const user = currentUser()
      const begun = change(form, (draft) => ({ ...draft, reading: draft.reading + 1 }))
      const images = await read()
      return changeLate(
        form.name,
        begun,
        (now) => {
          const ended = { ...now, reading: now.reading - 1 }
          return images.length === 0
            ? ended
            : withContent(ended, { references: [...now.references, ...images] })
        },
        user,
      )
    },

    async send(form, { request, mayExist, refusesInput, ...sending }) {
      const user = currentUser()
      const sent = change(form, (draft) => withAttempt(draft, sending))
      const { id } = sent.attempt ?? {}
      if (id === undefined) throw new Error('A request needs an id.')
      try {
        const run = await request(sent, id)
        changeLate(form.name, sent, (now) => afterCreate(now, id), user)
        return { run, isChanged: store.of(user).has(form.name) }
      } catch (error) {
        if (!mayExist(error))
          changeLate(form.name, sent, (now) => afterRefusal(now, refusesInput(error)), user)
        throw error
      }
    },
  }
}

import type { Session } from '../protocol/console.js'
import { createStore, type Store } from './store.js'

/** Undefined until the service has answered; null when nobody is signed in. */
export const sessionStore = createStore<Session | null | undefined>(undefined)

type Shown = Session | null | undefined

/** The user and not the session, so that someone who signs in again keeps what the page shows. */
export const userOf = (session: Session): string => JSON.stringify([session.email, session.account.name])

export const isSameUser = (one: Shown, other: Shown): boolean =>
  one?.id === other?.id || (!!one && !!other && userOf(one) === userOf(other))

/** Calls `forget` when somebody else, or nobody, is signed in. */
export function onUserChange(forget: () => void): void {
  let before = sessionStore.get()
  sessionStore.subscribe(() => {
    const session = sessionStore.get()
    if (!isSameUser(before, session)) forget()
    before = session
  })
}

/** Reads of the session and of the balance are numbered: what is older than what is shown changes nothing. */
let reads = 0
let shownRead = 0

/** For `setBalance`: take it before the request that reads the balance. */
export const balanceTime = (): number => ++reads

/** Whether nothing that was read later is shown. It is the newest from now on. */
export function isNewest(readAt: number): boolean {
  if (readAt < shownRead) return false
  shownRead = readAt
  return true
}

/** For answers that carry the balance, so that the navigation shows the newest. */
export function setBalance(balance: number, readAt: number): void {
  if (!isNewest(readAt)) return
  sessionStore.set((session) =>
    !session || session.account.balance === balance
      ? session
      : { ...session, account: { ...session.account, balance } },
  )
}

/** Somebody who has used this tab: the same object until `forgetUsers`, also while the session has expired. */
export type User = Readonly<Record<'name', string>>

const NOBODY: User = { name: '' }
const users = new Map<string, User>()

/** Note it before a request: when the answer comes, somebody else may have signed in. Nobody is a user too. */
export function currentUser(): User {
  const session = sessionStore.get()
  if (!session) return NOBODY
  const name = userOf(session)
  const user = users.get(name) ?? { name }
  users.set(name, user)
  return user
}

/** Whether what the user had in this tab is still kept. */
export const isKept = (user: User): boolean => user === NOBODY || users.get(user.name) === user

/** Everybody of whom this tab keeps something. */
export const keptUsers = (): readonly User[] => [...users.values()]

/** Calls `tell` now, or when the user is back after the session has expired. Never when nothing of the user is kept by then. */
export function whenCurrent(user: User, tell: () => void): void {
  if (currentUser() === user) {
    tell()
    return
  }
  if (user === NOBODY) return
  const end = sessionStore.subscribe(() => {
    if (isKept(user) && currentUser() !== user) return
    end()
    if (currentUser() === user) tell()
  })
}

/** Drops what all stores of users have. Answers that come later change nothing that is shown. */
export const forgetUsers = (): void => users.clear()

export interface UserStore<Value> extends Store<Value> {
  of(user: User): Value
  /** `user`: whose value changes, the current user unless it was noted before a request. */
  set(change: (value: Value) => Value, user?: User): void
}

/** A value per user of this tab, of which the one of the current user is shown. It stays when the session expires. */
export function createUserStore<Value>(initial: Value): UserStore<Value> {
  const values = new WeakMap<User, { readonly value: Value }>()
  const changes = createStore(0)
  const valueFor = (user: User): Value => {
    const kept = values.get(user)
    return kept === undefined ? initial : kept.value
  }
  return {
    get: () => valueFor(currentUser()),
    of: valueFor,
    set(change, user = currentUser()) {
      const before = valueFor(user)
      const value = change(before)
      if (Object.is(value, before)) return
      values.set(user, { value })
      changes.set((count) => count + 1)
    },
    subscribe(listener) {
      const ends = [changes.subscribe(listener), sessionStore.subscribe(listener)]
      return () => {
        for (const end of ends) end()
      }
    },
  }
}

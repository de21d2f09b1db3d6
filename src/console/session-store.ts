import type { Session } from '../protocol/console.js'
import { createStore } from './store.js'

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

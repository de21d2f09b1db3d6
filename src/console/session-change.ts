/** All tabs of a browser share one session: another tab can sign in as somebody else, and then this one starts over. */
import type { Session } from '../protocol/console.js'
import { navigate } from './router.js'
import { linkTo, parseRoute } from './routes.js'
import { isSameUser, sessionStore } from './session-store.js'
import { createStore } from './store.js'

export interface UserChange {
  /** The email that the page showed before. */
  readonly before: string
}

/** Set until the change has been noticed. */
export const userChangeStore = createStore<UserChange | undefined>(undefined)

/** Pages whose address belongs to no user. */
const OF_ANYBODY: readonly (string | undefined)[] = ['link', 'login']

/** What the service says about the session: of the same user, or of somebody else, who is not shown what the page had. */
export function adoptSession(session: Session): void {
  const before = sessionStore.get()
  if (before && !isSameUser(before, session)) {
    userChangeStore.set(() => ({ before: before.email }))
    const { page } = parseRoute(location.hash)
    // A run, a filter or a form that was filled from a run is that of the other user.
    if (page !== undefined && !OF_ANYBODY.includes(page)) navigate(linkTo(page), { replace: true })
  }
  sessionStore.set(() => session)
}

sessionStore.subscribe(() => {
  if (sessionStore.get() === null) userChangeStore.set(() => undefined)
})

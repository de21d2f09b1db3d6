/** Who is signed in: read once, kept in a store, and checked again when the page comes back into view. */
import { useEffect } from 'preact/hooks'
import { AUTH_PATHS, type NewPassword, type Session, type SignIn } from '../protocol/console.js'
import { ApiError, readSession as askForSession, request } from './api.js'
import { awaitedSecretsStore, secretsStore } from './keys/key-store.js'
import { navigate } from './router.js'
import { linkTo, parseRoute } from './routes.js'
import { drafts, forgetDrafts } from './runs/saved-draft.js'
import { adoptSession, userChangeStore } from './session-change.js'
import {
  balanceTime,
  currentUser,
  forgetUsers,
  isNewest,
  keptUsers,
  sessionStore,
  type User,
} from './session-store.js'
import { createStore, useStore } from './store.js'

/** The session of a page that is shown only to people who are signed in. */
export function useSession(): Session {
  const session = useStore(sessionStore)
  if (session === null || session === undefined) throw new Error('This page needs a session.')
  return session
}

export async function readSession(signal?: AbortSignal): Promise<void> {
  const readAt = balanceTime()
  const session = await askForSession(signal)
  if (isNewest(readAt)) adoptSession(session)
}

export async function signIn(body: SignIn): Promise<void> {
  showSession(await request<Session>('POST', AUTH_PATHS.signIn, { body }))
}

export async function exchangeLink(token: string): Promise<void> {
  const session = await request<Session>('POST', AUTH_PATHS.link, { body: { token } })
  // The token works once; it does not belong into the history. Who has gone to another page stays there.
  if (parseRoute(location.hash).page === 'link') navigate(linkTo('link'), { replace: true })
  userChangeStore.set(() => undefined)
  showSession(session)
}

export async function setPassword(body: NewPassword): Promise<void> {
  const user = currentUser()
  const session = await request<Session>('POST', AUTH_PATHS.password, { body })
  // A late answer must not sign the user in again after signing out.
  if (currentUser() === user) showSession(session)
}

/** What was read before says nothing any more. */
function showSession(session: Session | null): void {
  isNewest(balanceTime())
  sessionStore.set(() => session)
}

/** Ends the session of this browser; `everywhere`: all of the user. Rejects while a secret is awaited that would be lost. */
export async function signOut(everywhere = false): Promise<void> {
  if (!everywhere && awaitedSecretsStore.get() > 0)
    throw new Error('The secret of a key is still being made. Sign out when it has been shown.')
  try {
    await request('POST', AUTH_PATHS.signOut, { body: { everywhere } })
  } catch (error) {
    const hasEnded = error instanceof ApiError && error.code === 'not_signed_in'
    if (!hasEnded || everywhere) throw error
  }
  tellOtherTabs()
  leave()
}

/** The channel on which the tabs of a browser tell each other of a sign-out: they share one cookie, which is gone. */
const SIGN_OUTS = 'rushes.sign-out'

/** Names of users who were signed out while something was being created for them, until they have noticed. */
export const interruptedStore = createStore<ReadonlySet<string>>(new Set())

/** Whether an answer is not there, or a secret not copied. */
const isCreating = (user: User): boolean =>
  awaitedSecretsStore.of(user) > 0 ||
  secretsStore.of(user).length > 0 ||
  [...drafts.store.of(user).values()].some(({ attempt }) => attempt !== undefined)

function leave(): void {
  const interrupted = keptUsers().filter(isCreating)
  interruptedStore.set((names) => new Set([...names, ...interrupted.map(({ name }) => name)]))
  showSession(null)
  forgetUsers()
  forgetDrafts()
}

function tellOtherTabs(): void {
  const channel = new BroadcastChannel(SIGN_OUTS)
  channel.postMessage('signed out')
  channel.close()
}

/** Well below the limit of 60 session checks per minute. */
const MIN_CHECK_INTERVAL_MS = 10_000

/** Notices a session that ended elsewhere, also in a page that the browser kept for its back button. */
export function useSessionCheck(): void {
  useEffect(() => {
    let checkedAt = Date.now()
    const check = (isForced: boolean) => {
      if (!sessionStore.get() || document.visibilityState !== 'visible') return
      if (!isForced && Date.now() - checkedAt < MIN_CHECK_INTERVAL_MS) return
      checkedAt = Date.now()
      readSession().catch(() => undefined)
    }
    const onVisible = () => check(false)
    const onShow = (event: PageTransitionEvent) => check(event.persisted)
    const signOuts = new BroadcastChannel(SIGN_OUTS)
    signOuts.onmessage = leave
    document.addEventListener('visibilitychange', onVisible)
    window.addEventListener('pageshow', onShow)
    return () => {
      signOuts.close()
      document.removeEventListener('visibilitychange', onVisible)
      window.removeEventListener('pageshow', onShow)
    }
  }, [])
}

/** Signs in and out, and detects that the session was ended in another tab or on another device. */
import { useEffect } from 'preact/hooks'
import { AUTH_PATHS, type NewPassword, type Session, type SignIn } from '../protocol/console.js'
import {
  adoptSession,
  hasCode,
  nextReadNumber,
  refreshSession,
  request,
  sessionStore,
  startOver,
  takeNewest,
} from './api.js'
import { awaitedSecretsStore } from './keys/key-store.js'
import { linkTo, navigate, parseRoute } from './routes.js'
import { forgetDrafts } from './runs/drafts.js'
import { useStore } from './store.js'

/** Returns the current session. Throws if no user is signed in. */
export function useSession(): Session {
  const session = useStore(sessionStore)
  if (session === null || session === undefined) throw new Error('This page needs a session.')
  return session
}

export async function signIn(body: SignIn): Promise<void> {
  showSession(await request<Session>('POST', AUTH_PATHS.signIn, { body }))
}

export async function exchangeLink(token: string): Promise<void> {
  const session = await request<Session>('POST', AUTH_PATHS.link, { body: { token } })
  // Remove the used token from the browser history. Do not navigate if the user has opened another page.
  if (parseRoute(location.hash).page === 'link') navigate(linkTo('link'), { replace: true })
  showSession(session)
}

export async function setPassword(body: NewPassword): Promise<void> {
  showSession(await request<Session>('POST', AUTH_PATHS.password, { body }))
}

/** Shows a new session. Responses to earlier session requests are ignored from now on. */
function showSession(session: Session): void {
  takeNewest(nextReadNumber())
  adoptSession(session)
}

/** Broadcast channel that tells the other tabs that the shared session has ended. */
const SIGN_OUTS = 'rushes.sign-out'

/**
 * Ends this browser's session, or all sessions of the user with `everywhere`. Rejects while a key's new secret is being
 * created, since the user could no longer see it. `everywhere` skips this check.
 */
export async function signOut(everywhere = false): Promise<void> {
  if (!everywhere && awaitedSecretsStore.get() > 0)
    throw new Error('A key is still being created. Sign out after its secret was shown.')
  try {
    await request('POST', AUTH_PATHS.signOut, { body: { everywhere } })
  } catch (error) {
    if (!hasCode(error, 'not_signed_in') || everywhere) throw error
  }
  const channel = new BroadcastChannel(SIGN_OUTS)
  channel.postMessage('signed out')
  channel.close()
  leave()
}

function leave(): void {
  forgetDrafts()
  startOver()
}

/** Keeps session checks well below their rate limit of 60 per minute. */
const MIN_CHECK_INTERVAL_MS = 10_000

/**
 * Checks the session when the tab becomes visible, and when the back button restores the page from the browser's cache.
 * The user may have signed out elsewhere.
 */
export function useSessionCheck(): void {
  useEffect(() => {
    let checkedAt = Date.now()
    const check = (isForced: boolean) => {
      if (!sessionStore.get() || document.visibilityState !== 'visible') return
      if (!isForced && Date.now() - checkedAt < MIN_CHECK_INTERVAL_MS) return
      checkedAt = Date.now()
      refreshSession().catch(() => undefined)
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

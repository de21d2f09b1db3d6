/** Signing in and out, and noticing that a session has ended elsewhere. */
import { useEffect } from 'preact/hooks'
import { AUTH_PATHS, type NewPassword, type Session, type SignIn } from '../protocol/console.js'
import {
  ApiError,
  adoptSession,
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

/** The session of a page that needs one. */
export function useSession(): Session {
  const session = useStore(sessionStore)
  if (session === null || session === undefined) throw new Error('This page needs a session.')
  return session
}

export async function signIn(body: SignIn): Promise<void> {
  begin(await request<Session>('POST', AUTH_PATHS.signIn, { body }))
}

export async function exchangeLink(token: string): Promise<void> {
  const session = await request<Session>('POST', AUTH_PATHS.link, { body: { token } })
  // The token works once and must not stay in the history. A user who has left the page stays there.
  if (parseRoute(location.hash).page === 'link') navigate(linkTo('link'), { replace: true })
  begin(session)
}

export async function setPassword(body: NewPassword): Promise<void> {
  begin(await request<Session>('POST', AUTH_PATHS.password, { body }))
}

/** Answers to earlier reads of the session no longer count. */
function begin(session: Session): void {
  takeNewest(nextReadNumber())
  adoptSession(session)
}

/** Tells the other tabs of the browser that their shared session has ended. */
const SIGN_OUTS = 'rushes.sign-out'

/** Ends the session of this browser, or all of the user with `everywhere`. Rejects while a new secret would be lost. */
export async function signOut(everywhere = false): Promise<void> {
  if (!everywhere && awaitedSecretsStore.get() > 0)
    throw new Error('The secret of a key is still being made. Sign out when it has been shown.')
  try {
    await request('POST', AUTH_PATHS.signOut, { body: { everywhere } })
  } catch (error) {
    const hasEnded = error instanceof ApiError && error.code === 'not_signed_in'
    if (!hasEnded || everywhere) throw error
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

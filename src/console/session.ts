/** Who is signed in: read once, kept in a store, and checked again when the page comes back into view. */
import { useEffect } from 'preact/hooks'
import { AUTH_PATHS, type NewPassword, type Session, type SignIn } from '../protocol/console.js'
import { ApiError, readSession as askForSession, request } from './api.js'
import { navigate } from './router.js'
import { linkTo } from './routes.js'
import { forgetDrafts } from './runs/saved-draft.js'
import { adoptSession, userChangeStore } from './session-change.js'
import { sessionStore } from './session-store.js'
import { useStore } from './store.js'

/** The session of a page that is shown only to people who are signed in. */
export function useSession(): Session {
  const session = useStore(sessionStore)
  if (session === null || session === undefined) throw new Error('This page needs a session.')
  return session
}

export async function readSession(): Promise<void> {
  adoptSession(await askForSession())
}

export async function signIn(body: SignIn): Promise<void> {
  sessionStore.set(await request<Session>('POST', AUTH_PATHS.signIn, { body }))
}

export async function exchangeLink(token: string): Promise<void> {
  const session = await request<Session>('POST', AUTH_PATHS.link, { body: { token } })
  // The token works once; it does not belong into the history.
  navigate(linkTo('link'), { replace: true })
  userChangeStore.set(undefined)
  sessionStore.set(session)
}

export async function setPassword(body: NewPassword): Promise<void> {
  sessionStore.set(await request<Session>('POST', AUTH_PATHS.password, { body }))
}

export async function signOut(everywhere = false): Promise<void> {
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

function leave(): void {
  sessionStore.set(null)
  forgetDrafts()
}

function tellOtherTabs(): void {
  const channel = new BroadcastChannel(SIGN_OUTS)
  channel.postMessage('signed out')
  channel.close()
}

/** For answers that carry the balance, so that the navigation shows the newest. */
export function setBalance(balance: number): void {
  const session = sessionStore.get()
  if (!session || session.account.balance === balance) return
  sessionStore.set({ ...session, account: { ...session.account, balance } })
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

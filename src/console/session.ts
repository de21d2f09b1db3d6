/** Who is signed in: read once, kept in a store, and checked again when the page comes back into view. */
import { useEffect } from 'preact/hooks'
import { AUTH_PATHS, type NewPassword, type Session, type SignIn } from '../protocol/console.js'
import { request } from './api.js'
import { sessionStore } from './session-store.js'
import { useStore } from './store.js'

/** The session of a page that is shown only to people who are signed in. */
export function useSession(): Session {
  const session = useStore(sessionStore)
  if (session === null || session === undefined) throw new Error('This page needs a session.')
  return session
}

export async function readSession(): Promise<void> {
  sessionStore.set(await request<Session>('GET', AUTH_PATHS.session))
}

export async function signIn(body: SignIn): Promise<void> {
  sessionStore.set(await request<Session>('POST', AUTH_PATHS.signIn, { body }))
}

export async function exchangeLink(token: string): Promise<void> {
  sessionStore.set(await request<Session>('POST', AUTH_PATHS.link, { body: { token } }))
}

export async function setPassword(body: NewPassword): Promise<void> {
  sessionStore.set(await request<Session>('POST', AUTH_PATHS.password, { body }))
}

export async function signOut(everywhere = false): Promise<void> {
  await request('POST', AUTH_PATHS.signOut, { body: { everywhere } })
  sessionStore.set(null)
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
    document.addEventListener('visibilitychange', onVisible)
    window.addEventListener('pageshow', onShow)
    return () => {
      document.removeEventListener('visibilitychange', onVisible)
      window.removeEventListener('pageshow', onShow)
    }
  }, [])
}

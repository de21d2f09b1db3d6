/** Which page is drawn: by the session, then by the fragment. */
import type { ComponentChildren } from 'preact'
import { AccountPage } from './account/account-page.js'
import { lastAnswerStore } from './api.js'
import { LinkButton } from './components/button.js'
import { ErrorBoundary } from './components/error-boundary.js'
import { EmptyState, ErrorNotice } from './components/notice.js'
import { Page } from './components/page.js'
import { Toasts } from './components/toast.js'
import { CreditsPage } from './credits/credits-page.js'
import { KeysPage } from './keys/keys-page.js'
import { useResource } from './resource.js'
import { useRoute } from './router.js'
import { linkTo, type Route } from './routes.js'
import { NewRunPage } from './runs/new-run-page.js'
import { RunPage } from './runs/run-page.js'
import { RunsPage } from './runs/runs-page.js'
import { readSession, useSessionCheck } from './session.js'
import { sessionStore, userOf } from './session-store.js'
import { Centered } from './shell/centered.js'
import { Shell } from './shell/shell.js'
import { FirstPasswordPage, LinkPage } from './sign-in/link-page.js'
import { LoginPage } from './sign-in/login-page.js'
import { SignInPage } from './sign-in/sign-in-page.js'
import { useStore } from './store.js'

export function App() {
  const route = useRoute()
  return (
    <>
      <ErrorBoundary key={`${route.page}/${route.param}`} data={lastAnswerStore.get}>
        <Entrance route={route} />
      </ErrorBoundary>
      <Toasts />
    </>
  )
}

/** The fragment stays while someone signs in: afterwards the page is the one that was asked for. */
function Entrance({ route }: { readonly route: Route }) {
  const session = useStore(sessionStore)
  const token = route.page === 'link' ? route.param : undefined
  const isUnknown = session === undefined
  const first = useResource(async () => (isUnknown ? await readSession() : undefined), [isUnknown])
  useSessionCheck()

  if (session === undefined) return <Start {...first} />
  if (token !== undefined) return <LinkPage token={token} session={session} />
  if (session === null) return <SignInPage />
  if (route.page === 'link') return <FirstPasswordPage />
  if (route.page === 'login') return <LoginPage key={userOf(session)} query={route.query} />
  return (
    // Another user starts with nothing of what the one before has typed, opened or loaded.
    <Shell key={userOf(session)} session={session} page={route.page}>
      <ErrorBoundary key={`${route.page}/${route.param}`} data={lastAnswerStore.get}>
        {pageOf(route)}
      </ErrorBoundary>
    </Shell>
  )
}

function pageOf({ page, param, query }: Route): ComponentChildren {
  if (page === 'runs') return param === undefined ? <RunsPage query={query} /> : <RunPage id={param} />
  if (page === 'new') return <NewRunPage query={query} />
  if (page === 'keys') return <KeysPage />
  if (page === 'credits') return <CreditsPage query={query} />
  if (page === 'account') return <AccountPage />
  return <MissingPage />
}

/** Before the service has answered: nothing, unless it does not answer. */
function Start({ error, reload }: { readonly error: unknown; reload(): void }) {
  if (error === undefined) return <Centered />
  return (
    <Centered title="Console">
      <ErrorNotice error={error} onRetry={reload} />
    </Centered>
  )
}

function MissingPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon="search"
        title="This address has no page"
        action={<LinkButton href={linkTo('runs')}>Go to Runs</LinkButton>}
      >
        Check the address, or choose a page of the navigation.
      </EmptyState>
    </Page>
  )
}

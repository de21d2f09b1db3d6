/**
 * The console: the web page of `rushes serve`, where account owners see results and manage keys and credits. It uses
 * only the endpoints in `protocol/console.ts`, relative to its own URL. The session decides whether the user must sign
 * in; then the URL fragment selects the page.
 */
import { Component, type ComponentChildren, render } from 'preact'
import { AccountPage } from './account/account-page.js'
import { refreshSession, sessionStore } from './api.js'
import { LinkButton } from './components/button.js'
import { EmptyState, ErrorNotice, Notice, RetryButton } from './components/notice.js'
import { Page } from './components/page.js'
import { Toasts } from './components/toast.js'
import { CreditsPage } from './credits/credits-page.js'
import { KeysPage } from './keys/keys-page.js'
import { useResource } from './resource.js'
import { linkTo, type Route, useRoute } from './routes.js'
import { NewRunPage } from './runs/new-run-page.js'
import { RunPage } from './runs/run-page.js'
import { RunsPage } from './runs/runs-page.js'
import { useSessionCheck } from './session.js'
import { Centered } from './shell/centered.js'
import { Shell } from './shell/shell.js'
import { FirstPasswordPage, LinkPage, SignInPage } from './sign-in/sign-in-page.js'
import { useStore } from './store.js'
import { applyTheme } from './theme.js'

function App() {
  const route = useRoute()
  return (
    <>
      <ErrorBoundary key={`${route.page}/${route.param}`}>
        <Entrance route={route} />
      </ErrorBoundary>
      <Toasts />
    </>
  )
}

/** Shows the sign-in page or the requested page. Sign-in keeps the fragment, so that its page opens afterwards. */
function Entrance({ route }: { readonly route: Route }) {
  const session = useStore(sessionStore)
  const token = route.page === 'link' ? route.param : undefined
  const isUnknown = session === undefined
  const first = useResource(async () => (isUnknown ? await refreshSession() : undefined), [isUnknown])
  useSessionCheck()

  if (session === undefined) return <Start {...first} />
  if (token !== undefined) return <LinkPage token={token} session={session} />
  if (session === null) return <SignInPage />
  if (route.page === 'link') return <FirstPasswordPage />
  return (
    <Shell session={session} page={route.page}>
      <ErrorBoundary key={`${route.page}/${route.param}`}>{pageOf(route)}</ErrorBoundary>
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

/** Shown until the first response, and if that is an error. */
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
        title="This page does not exist"
        action={<LinkButton href={linkTo('runs')}>Go to Runs</LinkButton>}
      >
        Check the address, or choose a page from the menu.
      </EmptyState>
    </Page>
  )
}

/** If drawing a component throws, shows the error instead. */
class ErrorBoundary extends Component<{ readonly children: ComponentChildren }, { readonly error: unknown }> {
  override state = { error: undefined as unknown }

  static override getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render({ children }: { readonly children: ComponentChildren }) {
    const { error } = this.state
    if (error === undefined) return children
    const retry = <RetryButton onClick={() => this.setState({ error: undefined })} />
    return (
      <div class="page">
        <Notice tone="bad" title="This page could not be displayed." action={retry}>
          {error instanceof Error ? error.message : String(error)}
        </Notice>
      </div>
    )
  }
}

// Otherwise the browser would open a file that is dropped beside a form, and the images in the form would be lost.
for (const type of ['dragover', 'drop'] as const)
  window.addEventListener(type, (event) => {
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  })
applyTheme()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)

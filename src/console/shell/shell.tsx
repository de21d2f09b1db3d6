/** What is around every page: navigation, balance, who is signed in, and what concerns the whole account. */
import type { ComponentChildren } from 'preact'
import { useCallback, useRef, useState } from 'preact/hooks'
import type { Session } from '../../protocol/console.js'
import { connectionStore, messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { Icon, type IconName } from '../components/icon.js'
import { Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { formatNumber } from '../format.js'
import { LostSecrets, NewSecrets } from '../keys/secret-dialog.js'
import { linkTo, type PageName } from '../routes.js'
import { usePolling } from '../runs/polling.js'
import { interruptedStore, readSession, signOut } from '../session.js'
import { userOf } from '../session-store.js'
import { useShortcuts } from '../shortcuts.js'
import { useStore } from '../store.js'
import { Brand } from './brand.js'
import { ShortcutsDialog } from './shortcuts-dialog.js'
import { ThemeButton } from './theme-button.js'
import { UserChangeNotice } from './user-change-notice.js'

interface NavigationItem {
  readonly page: PageName
  readonly label: string
  readonly icon: IconName
}

const NAVIGATION: readonly NavigationItem[] = [
  { page: 'runs', label: 'Runs', icon: 'runs' },
  { page: 'new', label: 'New run', icon: 'plus' },
  { page: 'keys', label: 'API keys', icon: 'key' },
  { page: 'credits', label: 'Credits', icon: 'credits' },
  { page: 'account', label: 'Account', icon: 'user' },
]

export interface ShellProps {
  readonly session: Session
  readonly page: PageName | undefined
  readonly children: ComponentChildren
}

export function Shell({ session, page, children }: ShellProps) {
  const main = useRef<HTMLElement>(null)
  const [isListShown, setListShown] = useState(false)
  useShortcuts(useCallback(() => setListShown(true), []))
  return (
    <div class="shell">
      <button type="button" class="skip-link" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="sidebar">
        <a class="brand-link" href={linkTo('runs')} aria-label="rushes, runs">
          <Brand />
        </a>
        <Navigation page={page} />
        <Footer session={session} onShortcuts={() => setListShown(true)} />
      </header>
      <main class="main" ref={main} tabIndex={-1}>
        <Banners session={session} />
        {children}
      </main>
      {isListShown && <ShortcutsDialog onClose={() => setListShown(false)} />}
      <NewSecrets />
    </div>
  )
}

function Navigation({ page }: { readonly page: PageName | undefined }) {
  return (
    <nav class="navigation" aria-label="Pages">
      <ul>
        {NAVIGATION.map((item) => (
          <li key={item.page}>
            <a href={linkTo(item.page)} aria-current={item.page === page ? 'page' : undefined}>
              <Icon name={item.icon} size={18} />
              <span>{item.label}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

interface FooterProps {
  readonly session: Session
  readonly onShortcuts: () => void
}

function Footer({ session: { email, account }, onShortcuts }: FooterProps) {
  const leave = () => signOut().catch((error: unknown) => showToast(messageOf(error), 'bad'))
  return (
    <div class="sidebar-foot">
      <a class="balance" href={linkTo('credits')}>
        <span class="balance-label">Balance</span>
        <strong>{formatNumber(account.balance)}</strong> <span class="balance-unit">credits</span>
      </a>
      <div class="who">
        <a class="email" href={linkTo('account')} title={`${email}, account ${account.name}`}>
          {email}
        </a>
        <div class="who-buttons">
          <Button
            kind="ghost"
            size="small"
            class="shortcuts-button"
            label="Keyboard shortcuts"
            icon="keyboard"
            onClick={onShortcuts}
          />
          <ThemeButton />
          <Button kind="ghost" size="small" icon="sign-out" label="Sign out" onClick={leave} />
        </div>
      </div>
    </div>
  )
}

/** Tries by itself: not every page has something to ask. */
function Reconnecting() {
  const { retry } = usePolling(
    {
      async ask(signal) {
        await readSession(signal)
        return 'done'
      },
    },
    [],
  )
  return (
    <Notice
      tone="warn"
      title="The service does not answer."
      action={
        <Button size="small" icon="rotate" onClick={retry}>
          Try now
        </Button>
      }
    >
      Trying again. Nothing that you see here is lost.
    </Notice>
  )
}

/** After signing in again. What it was has been forgotten with the session. */
function InterruptedNotice({ session }: { readonly session: Session }) {
  const user = userOf(session)
  if (!useStore(interruptedStore).has(user)) return null
  const dismiss = () => interruptedStore.set((names) => new Set([...names].filter((name) => name !== user)))
  return (
    <Notice
      tone="warn"
      title="Something was still being created when you were signed out."
      action={
        <Button size="small" onClick={dismiss}>
          OK
        </Button>
      }
    >
      Check <a href={linkTo('runs')}>Runs</a> and <a href={linkTo('keys')}>API keys</a>.
    </Notice>
  )
}

/** What holds for every page. */
function Banners({ session }: { readonly session: Session }) {
  const connection = useStore(connectionStore)
  return (
    <div class="banners">
      <UserChangeNotice />
      <InterruptedNotice session={session} />
      <LostSecrets />
      {connection === 'lost' && <Reconnecting />}
      {session.account.banned && (
        <Notice tone="bad" title={`The account "${session.account.name}" is banned.`}>
          You can look at everything, but nothing can be created: no runs and no API keys. Ask the
          administrator of this service to lift the ban.
        </Notice>
      )}
    </div>
  )
}

/** Frame around every page: navigation, balance, signed-in user, and notices about the account or the connection. */
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import type { Session } from '../../protocol/console.js'
import { Button } from '../components/button.js'
import { Icon, type IconName } from '../components/icon.js'
import { Notice } from '../components/notice.js'
import { toastError } from '../components/toast.js'
import { formatNumber } from '../format.js'
import { LostSecrets, NewSecrets } from '../keys/key-dialogs.js'
import { linkTo, type PageName } from '../routes.js'
import { signOut } from '../session.js'
import { Brand } from './centered.js'

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
        <Footer session={session} />
      </header>
      <main class="main" ref={main} tabIndex={-1}>
        <Banners session={session} />
        {children}
      </main>
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

function Footer({ session: { email, account } }: { readonly session: Session }) {
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
        <Button kind="ghost" size="small" onClick={() => signOut().catch(toastError)}>
          Sign out
        </Button>
      </div>
    </div>
  )
}

/** Notices shown on every page. */
function Banners({ session }: { readonly session: Session }) {
  return (
    <div class="banners">
      <LostSecrets />
      {session.account.banned && (
        <Notice tone="bad" title={`The account "${session.account.name}" is banned.`}>
          You can see everything, but you cannot create runs or API keys. Ask the administrator of this
          service to lift the ban.
        </Notice>
      )}
    </div>
  )
}

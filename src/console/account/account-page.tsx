import { Badge, Notice } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { Time } from '../components/time.js'
import { showToast } from '../components/toast.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import { setTheme, THEMES, type Theme, themeStore } from '../theme.js'
import { PasswordForm } from './password-form.js'
import { SessionsCard } from './sessions-card.js'

export function AccountPage() {
  const { email, account, has_password: hasPassword, expires_at: expiresAt } = useSession()
  return (
    <Page title="Account" width="narrow">
      <Card>
        <dl class="facts">
          <dt>Email</dt>
          <dd class="wrap">{email}</dd>
          <dt>Account</dt>
          <dd class="row">
            <span class="wrap">{account.name}</span>
            {account.banned ? <Badge tone="bad">Banned</Badge> : <Badge tone="good">Active</Badge>}
          </dd>
          <dt>Session ends</dt>
          <dd>
            <Time at={expiresAt} />, later with each use
          </dd>
        </dl>
      </Card>
      <Card title="Password" about="A new password ends your other sessions.">
        {!hasPassword && (
          <Notice tone="warn">
            You have no password yet. Set one, so that you can sign in without a link.
          </Notice>
        )}
        <PasswordForm
          submit={hasPassword ? 'Change password' : 'Set password'}
          onDone={() => showToast('Your password is set. Other sessions have ended.')}
        />
      </Card>
      <SessionsCard />
      <Card title="Appearance" about="Kept in this browser.">
        <ThemeChoice />
      </Card>
    </Page>
  )
}

const THEME_NAMES: Readonly<Record<Theme, string>> = { system: 'As the system', light: 'Light', dark: 'Dark' }

function ThemeChoice() {
  const current = useStore(themeStore)
  return (
    <fieldset class="fieldset segments">
      <legend class="visually-hidden">Colours</legend>
      {THEMES.map((theme) => (
        <label key={theme}>
          <input type="radio" name="theme" checked={theme === current} onChange={() => setTheme(theme)} />
          <span>{THEME_NAMES[theme]}</span>
        </label>
      ))}
    </fieldset>
  )
}

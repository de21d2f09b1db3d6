import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type SessionList } from '../../protocol/console.js'
import { hasCode, request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { RadioGroup } from '../components/field.js'
import { Badge, Loaded, Notice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { type Column, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { showToast, toastError } from '../components/toast.js'
import { capitalized } from '../format.js'
import { actionState, actionStore, runAction, useResource } from '../resource.js'
import { signOut, useSession } from '../session.js'
import { createStore, useStore } from '../store.js'
import { setTheme, THEMES, themeStore } from '../theme.js'
import { PasswordForm } from './password-form.js'

export function AccountPage() {
  const { email, account, has_password: hasPassword, expires_at: expiresAt } = useSession()
  return (
    <Page title="Account">
      <div class="settings">
        <Card title="Profile">
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
              <Time at={expiresAt} />; extended on use
            </dd>
          </dl>
          <div class="row">
            <Button size="small" icon="sign-out" onClick={() => signOut().catch(toastError)}>
              Sign out
            </Button>
          </div>
        </Card>
        <Card title="Password" about="A new password ends your other sessions.">
          {!hasPassword && (
            <Notice tone="warn">You have no password yet. Set one to sign in without a link.</Notice>
          )}
          <PasswordForm
            submit={hasPassword ? 'Change password' : 'Set password'}
            onDone={() => showToast('Password set. Other sessions have ended.')}
          />
        </Card>
        <SessionsCard />
        <Card title="Appearance" about="Saved in this browser.">
          <ThemeChoice />
        </Card>
      </div>
    </Page>
  )
}

function ThemeChoice() {
  return (
    <RadioGroup
      label="Theme"
      value={useStore(themeStore)}
      choices={THEMES.map((theme) => ({ value: theme, label: capitalized(theme) }))}
      onChange={setTheme}
    />
  )
}

type ListedSession = SessionList['sessions'][number]

/** Maximum number of sessions in a response of the service. */
const MAX_LISTED = 100

const sessionsStore = createStore<SessionList | undefined>(undefined)

const endName = ({ id }: ListedSession): string => `end session ${id}`

function end(session: ListedSession): void {
  void runAction(endName(session), {
    async act() {
      await request('DELETE', CONSOLE_PATHS.session, { params: { id: session.id } }).catch((thrown) => {
        // The session has already ended.
        if (!hasCode(thrown, 'not_found')) throw thrown
      })
      sessionsStore.set(
        (list) => list && { ...list, sessions: list.sessions.filter(({ id }) => id !== session.id) },
      )
    },
    onMissed: () => showToast('Session ended.'),
    onMissedError: toastError,
  })
}

function SessionsCard() {
  const sessions = useResource(
    (signal) => request<SessionList>('GET', CONSOLE_PATHS.sessions, { signal }),
    [],
    sessionsStore,
  )
  useStore(actionStore)
  const [isAsking, setAsking] = useState(false)
  const columns: readonly Column<ListedSession>[] = [
    {
      name: 'Browser',
      render: (row) => (
        <span class="row" title={row.user_agent ?? undefined}>
          <span class="wrap">{describeAgent(row.user_agent)}</span>
          {row.current && <Badge tone="accent">This browser</Badge>}
        </span>
      ),
    },
    { name: 'Address', render: (row) => <span class="mono">{row.address ?? '–'}</span> },
    { name: 'Signed in', class: 'nowrap', render: (row) => <Time at={row.created_at} /> },
    { name: 'Last used', class: 'nowrap', render: (row) => <Time at={row.last_used_at} /> },
    {
      name: 'End',
      isTitleHidden: true,
      align: 'right',
      render: (row) =>
        row.current ? (
          <span />
        ) : (
          <Button size="small" isBusy={actionState(endName(row)).isBusy} onClick={() => end(row)}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Card
      isFlush
      title="Sessions"
      about="Browsers where you are signed in. A session ends after 7 days without use."
      actions={
        <Button size="small" icon="sign-out" onClick={() => setAsking(true)}>
          Sign out everywhere
        </Button>
      }
    >
      <Loaded {...sessions} placeholder={<SkeletonLines count={2} />}>
        {(data) => <Table caption="Sessions" columns={columns} rows={data.sessions} keyOf={({ id }) => id} />}
      </Loaded>
      {sessions.data?.sessions.length === MAX_LISTED && (
        <p class="hint card-notice">The {MAX_LISTED} most recently used sessions.</p>
      )}
      {isAsking && (
        <ConfirmDialog
          title="Sign out everywhere?"
          action="Sign out everywhere"
          kind="danger"
          onConfirm={() => signOut(true)}
          onClose={() => setAsking(false)}
        >
          <p>
            All your sessions end, including this one. Unused sign-in links stop working. API keys and runs
            are not affected.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  )
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|CriOS|Chromium|HeadlessChrome)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
  [/\bcurl\//, 'curl'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** Shortens a user agent to browser and system, such as `Chrome on macOS`. Returns an unknown user agent unchanged. */
export function describeAgent(line: string | null | undefined): string {
  if (line === null || line === undefined || line.trim() === '') return 'Unknown browser'
  const find = (table: typeof BROWSERS) => table.find(([pattern]) => pattern.test(line))?.[1]
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)]
  if (browser === undefined && system === undefined) return line.slice(0, 80)
  return [browser ?? 'A browser', system].filter((part) => part !== undefined).join(' on ')
}

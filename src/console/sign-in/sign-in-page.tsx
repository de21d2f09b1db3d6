import { useEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../../protocol/console.js'
import { quoteWord } from '../../protocol/text.js'
import { PasswordForm } from '../account/password-form.js'
import { hasCode, messageOf } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { Form, PasswordField, TextField } from '../components/field.js'
import { ErrorNotice, Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { linkTo, navigate } from '../routes.js'
import { exchangeLink, signIn, useSession } from '../session.js'
import { Centered } from '../shell/centered.js'

/** Shown instead of a page that needs a session. Keeps the URL, so that the page opens after sign-in. */
export function SignInPage() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [isTried, setTried] = useState(false)
  const emailField = useRef<HTMLInputElement>(null)
  const enter = useAction(() => signIn({ email: email.trim(), password }))
  useEffect(() => emailField.current?.focus(), [])
  const emailError = isTried && email.trim() === '' ? 'Enter your email address.' : undefined
  const passwordError = isTried && password === '' ? 'Enter your password.' : undefined
  return (
    <Centered title="Sign in">
      <Form
        class="form"
        isValid={email.trim() !== '' && password !== ''}
        onTry={() => setTried(true)}
        onSubmit={() => void enter.run()}
      >
        {enter.error !== undefined && <Notice tone="bad">{signInMessage(enter.error)}</Notice>}
        <TextField
          label="Email"
          type="email"
          name="email"
          autocomplete="username"
          spellcheck={false}
          inputRef={emailField}
          value={email}
          onInput={setEmail}
          error={emailError}
        />
        <PasswordField
          label="Password"
          autocomplete="current-password"
          value={password}
          onInput={setPassword}
          error={passwordError}
        />
        <Button type="submit" kind="primary" class="button-wide" isBusy={enter.isBusy}>
          Sign in
        </Button>
      </Form>
      <div class="centered-hint stack">
        <h2>No password, or forgotten?</h2>
        <p>
          Run this command on the machine of the service, with its <code>--data</code> or{' '}
          <code>--database</code> if it has one. It prints a link that signs you in:
        </p>
        <LinkCommand email={email} />
      </div>
    </Centered>
  )
}

/** The command that prints a sign-in link, to copy. */
function LinkCommand({ email = '' }: { readonly email?: string | undefined }) {
  const word = email.trim() === '' ? '<email>' : quoteWord(email.trim())
  return <CodeBlock code={`rushes admin user link ${word}`} label="Command" />
}

function signInMessage(error: unknown): string {
  if (hasCode(error, 'invalid_credentials')) return 'Wrong email or password.'
  if (hasCode(error, 'https_required'))
    return 'Passwords are not accepted over HTTP. Open this page with https://, or on the machine of the service.'
  return messageOf(error)
}

interface LinkPageProps {
  readonly token: string
  readonly session: Session | null
}

/**
 * Page `#/link/<token>`: signs in with a single-use link, then offers to set a password. Any website can open such a
 * URL. Therefore the page sends nothing and keeps the current session until the user presses the button.
 */
export function LinkPage({ token, session }: LinkPageProps) {
  const exchange = useAction(() => exchangeLink(token))
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => button.current?.focus(), [])
  const { error } = exchange
  // The link was used, has expired or never existed. The service does not say which.
  if (hasCode(error, 'invalid_link'))
    return (
      <Centered title="This link no longer works">
        <p>
          A link works once, within 15 minutes. To get a new link, run this command on the machine of the
          service, with its <code>--data</code> or <code>--database</code> if it has one:
        </p>
        <LinkCommand email={session?.email} />
        <LinkButton href={linkTo('runs')}>
          {session === null ? 'Sign in with a password' : 'Go to Runs'}
        </LinkButton>
      </Centered>
    )
  if (hasCode(error, 'https_required'))
    return (
      <Centered title="Sign in by link">
        <Notice tone="bad">
          Links are not accepted over HTTP. This link was not used: open it with https://, or on the machine
          of the service.
        </Notice>
      </Centered>
    )
  return (
    <Centered title="Sign in by link">
      <ErrorNotice error={error} />
      {session === null ? (
        <p>This link works once. After signing in, you can set a password for the next time.</p>
      ) : (
        <p class="wrap">
          You are already signed in as <strong>{session.email}</strong>. You can keep this session, or sign in
          again as the user of the link, which uses it up.
        </p>
      )}
      <div class="row">
        <Button ref={button} kind="primary" isBusy={exchange.isBusy} onClick={() => void exchange.run()}>
          Sign in with this link
        </Button>
        {session !== null && (
          <Button onClick={() => navigate(linkTo('runs'), { replace: true })}>Keep this session</Button>
        )}
      </div>
    </Centered>
  )
}

export function FirstPasswordPage() {
  const { email, has_password: hasPassword } = useSession()
  const leave = () => navigate(linkTo('runs'))
  return (
    <Centered title={hasPassword ? 'Set a new password?' : 'Set a password'}>
      <p class="wrap">
        You are signed in as <strong>{email}</strong>. With a password, you can sign in without a link.
      </p>
      <PasswordForm
        submit="Set password"
        onDone={() => {
          leave()
          showToast('Password set.')
        }}
      >
        <Button kind="ghost" onClick={leave}>
          Skip
        </Button>
      </PasswordForm>
    </Centered>
  )
}

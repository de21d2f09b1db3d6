import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../../protocol/console.js'
import { PasswordForm } from '../account/password-form.js'
import { ApiError, messageOf } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { focusFirstError, PasswordField, TextField } from '../components/field.js'
import { Notice } from '../components/notice.js'
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
      <form
        noValidate
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          setTried(true)
          if (email.trim() !== '' && password !== '') void enter.run()
          else focusFirstError(event.currentTarget)
        }}
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
      </form>
      <p class="hint centered-hint">
        No password yet, or forgotten? On the machine of the service, run{' '}
        <code>rushes admin user link {email.trim() === '' ? '<email>' : email.trim()}</code>. It prints a link
        that signs you in once.
      </p>
    </Centered>
  )
}

function signInMessage(error: unknown): string {
  const code = error instanceof ApiError ? error.code : undefined
  if (code === 'invalid_credentials') return 'Wrong email or password.'
  if (code === 'https_required')
    return (
      'A password is not accepted over plain http from another machine. ' +
      'Open this page by https, or on the machine of the service.'
    )
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
  const problem = error === undefined ? undefined : linkProblem(error)
  return (
    <Centered title="Sign in by link">
      {problem !== undefined && <Notice tone="bad">{problem.text}</Notice>}
      {problem?.advice}
      {problem?.advice === undefined && session !== null && (
        <p class="wrap">
          You are signed in as <strong>{session.email}</strong>. Sign in with the link instead?
        </p>
      )}
      {problem?.advice === undefined ? (
        <div class="row">
          <Button ref={button} kind="primary" isBusy={exchange.isBusy} onClick={() => void exchange.run()}>
            Sign in with this link
          </Button>
          {session !== null && (
            <Button onClick={() => navigate(linkTo('runs'), { replace: true })}>Cancel</Button>
          )}
        </div>
      ) : (
        problem.code !== 'https_required' && (
          <LinkButton href={linkTo('runs')}>
            {session === null ? 'Sign in with a password' : 'Go to Runs'}
          </LinkButton>
        )
      )}
    </Centered>
  )
}

interface LinkProblem {
  readonly code: string | undefined
  readonly text: string
  /** What to do instead. Set if a retry cannot succeed. */
  readonly advice?: ComponentChildren
}

function linkProblem(error: unknown): LinkProblem {
  const code = error instanceof ApiError ? error.code : undefined
  const text = messageOf(error)
  if (code === 'https_required')
    return {
      code,
      text: 'A link is not accepted over plain http from another machine.',
      advice: (
        <p>
          The link was not used. Open it again with <code>https://</code> in the place of <code>http://</code>
          , or on the machine of the service.
        </p>
      ),
    }
  if (code !== 'invalid_link') return { code, text }
  return {
    code,
    text,
    advice: (
      <p>
        A link works once, and for 15 minutes. For another one, run{' '}
        <code>rushes admin user link &lt;email&gt;</code> on the machine of the service.
      </p>
    ),
  }
}

export function FirstPasswordPage() {
  const { email, has_password: hasPassword } = useSession()
  const leave = () => navigate(linkTo('runs'))
  return (
    <Centered title={hasPassword ? 'Set a new password?' : 'Set a password'}>
      <p class="wrap">
        You are signed in as <strong>{email}</strong>. With a password you can sign in without a link.
      </p>
      <PasswordForm
        submit="Set password"
        onDone={() => {
          leave()
          showToast('Your password is set.')
        }}
      >
        <Button kind="ghost" onClick={leave}>
          Skip
        </Button>
      </PasswordForm>
    </Centered>
  )
}

import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { focusFirstError, PasswordField, TextField } from '../components/field.js'
import { Notice } from '../components/notice.js'
import { useAction } from '../resource.js'
import { signIn } from '../session.js'
import { Centered } from '../shell/centered.js'

/** Shown in the place of any page that needs a session; the address stays. */
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
    return 'A password is not accepted over plain http from another machine. Open this page by https, or on the machine of the service.'
  return messageOf(error)
}

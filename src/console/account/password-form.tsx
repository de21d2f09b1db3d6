import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import {
  hasForbiddenCharacter,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  passwordLength,
} from '../../protocol/credentials.js'
import { hasCode } from '../api.js'
import { Button } from '../components/button.js'
import { Form, PasswordField } from '../components/field.js'
import { ErrorNotice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { setPassword, useSession } from '../session.js'

export interface PasswordFormProps {
  readonly submit: string
  readonly onDone: () => void
  /** Shown beside the submit button. */
  readonly children?: ComponentChildren
}

/** Form for a new password. Asks for the current password only if the service requires it. */
export function PasswordForm({ submit, onDone, children }: PasswordFormProps) {
  const { email, can_set_password: canSet, has_password: hasPassword } = useSession()
  const needsCurrent = hasPassword && !canSet
  const [current, setCurrent] = useState('')
  const [password, setNew] = useState('')
  const [isTried, setTried] = useState(false)
  const save = useAction(() => setPassword({ password, ...(needsCurrent && { current }) }), {
    onDone: () => {
      setCurrent('')
      setNew('')
      setTried(false)
      onDone()
    },
    onMissed: () => showToast('Password set. Other sessions have ended.'),
  })
  const isWrong = hasCode(save.error, 'invalid_credentials')
  const currentError = isWrong
    ? 'This is not your current password.'
    : isTried && needsCurrent && current === ''
      ? 'Enter your current password.'
      : undefined
  const problem = problemOf(password)
  return (
    <Form
      class="form"
      isValid={problem === undefined && (!needsCurrent || current !== '')}
      onTry={() => setTried(true)}
      onSubmit={() => void save.run()}
    >
      {/* Password managers store the new password under this user name. */}
      <input
        class="visually-hidden"
        type="text"
        name="username"
        autocomplete="username"
        value={email}
        readOnly
        tabIndex={-1}
        aria-hidden="true"
      />
      {needsCurrent && (
        <PasswordField
          label="Current password"
          autocomplete="current-password"
          value={current}
          onInput={setCurrent}
          error={currentError}
        />
      )}
      <PasswordField
        label="New password"
        autocomplete="new-password"
        value={password}
        onInput={setNew}
        hint={`At least ${MIN_PASSWORD_LENGTH} characters`}
        error={isTried ? problem : undefined}
      />
      {!isWrong && <ErrorNotice error={save.error} />}
      <div class="row">
        <Button type="submit" kind="primary" isBusy={save.isBusy}>
          {submit}
        </Button>
        {children}
      </div>
    </Form>
  )
}

function problemOf(password: string): string | undefined {
  if (hasForbiddenCharacter(password)) return 'Remove the control characters, such as tabs.'
  const length = passwordLength(password)
  if (length < MIN_PASSWORD_LENGTH) return `Enter at least ${MIN_PASSWORD_LENGTH} characters (now ${length}).`
  if (length > MAX_PASSWORD_LENGTH) return `Enter at most ${MAX_PASSWORD_LENGTH} characters (now ${length}).`
  return undefined
}

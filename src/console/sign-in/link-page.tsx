/** `#/link/<token>`: signs in once, when it was confirmed, then lets a password be set. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Session } from '../../protocol/console.js'
import { PasswordForm } from '../account/password-form.js'
import { ApiError, messageOf } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { navigate } from '../router.js'
import { linkTo } from '../routes.js'
import { exchangeLink, useSession } from '../session.js'
import { Centered } from '../shell/centered.js'

export interface LinkPageProps {
  readonly token: string
  readonly session: Session | null
}

/** Any website can send someone to a link: nothing is sent, and nobody is signed out, before the button is pressed. */
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
  /** What to do in the place of another try. */
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

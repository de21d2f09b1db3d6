/** `#/link/<token>`: signs in once, then lets a password be set. */
import { useEffect } from 'preact/hooks'
import { PasswordForm } from '../account/password-form.js'
import { ApiError, messageOf } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { Notice, SkeletonLines } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { navigate } from '../router.js'
import { linkTo } from '../routes.js'
import { exchangeLink, useSession } from '../session.js'
import { Centered } from '../shell/centered.js'

export function ExchangePage({ token }: { readonly token: string }) {
  const exchange = useAction(async () => {
    await exchangeLink(token)
    // The token works once; it does not belong into the history.
    navigate(linkTo('link'), { replace: true })
  })
  useEffect(() => void exchange.run(), [token])
  if (exchange.error === undefined)
    return (
      <Centered title="Signing in">
        <SkeletonLines />
      </Centered>
    )
  const canTryAgain =
    exchange.error instanceof ApiError && ['network', 'RATE_LIMITED'].includes(exchange.error.code)
  return (
    <Centered title="Sign in by link">
      <Notice tone="bad">{messageOf(exchange.error)}</Notice>
      {canTryAgain ? (
        <Button kind="primary" onClick={() => void exchange.run()} isBusy={exchange.isBusy}>
          Try again
        </Button>
      ) : (
        <>
          <p>
            A link works once, and for 15 minutes. For another one, run{' '}
            <code>rushes admin user link &lt;email&gt;</code> on the machine of the service.
          </p>
          <LinkButton href={linkTo('runs')}>Sign in with a password</LinkButton>
        </>
      )}
    </Centered>
  )
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
          showToast('Your password is set.')
          leave()
        }}
      >
        <Button kind="ghost" onClick={leave}>
          Skip
        </Button>
      </PasswordForm>
    </Centered>
  )
}

/** `#/login?…`: lets a command line on this computer have a key. Nothing is created before the button is pressed. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type LoginGrant } from '../../protocol/console.js'
import { messageOf, request } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { linkTo } from '../routes.js'
import { signOut, useSession } from '../session.js'
import { Centered } from '../shell/centered.js'
import { UserChangeNotice } from '../shell/user-change-notice.js'
import { declinedAddress, type LoginQuery, readLoginQuery, returnAddress } from './login-request.js'

export function LoginPage({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const login = readLoginQuery(query)
  if (login === undefined)
    return (
      <Centered title="Log in on the command line">
        <Notice tone="bad">This address is not complete, so nothing was created.</Notice>
        <p>
          Run <code>rushes login --web</code> again. It opens this page with a new address.
        </p>
        <LinkButton href={linkTo('runs')}>Go to Runs</LinkButton>
      </Centered>
    )
  return <Confirmation login={login} />
}

type Step = 'asking' | 'returning' | 'declined'

function Confirmation({ login }: { readonly login: LoginQuery }) {
  const { email, account } = useSession()
  const [step, setStep] = useState<Step>('asking')
  const { challenge, name } = login
  const grant = useAction(
    () => request<LoginGrant>('POST', CONSOLE_PATHS.logins, { body: { challenge, name } }),
    {
      // Without this page the code is not used, and no key is created.
      onDone: ({ code }) => {
        if (step !== 'asking') return
        setStep('returning')
        location.assign(returnAddress(login, code))
      },
    },
  )
  const leave = () => signOut().catch((error: unknown) => showToast(messageOf(error), 'bad'))
  const decline = () => {
    setStep('declined')
    location.assign(declinedAddress(login))
  }
  if (step === 'returning')
    return (
      <Centered title="Go back to the terminal">
        <p>The command line gets its key now. You can close this page.</p>
      </Centered>
    )
  if (step === 'declined')
    return (
      <Centered title="Go back to the terminal">
        <p>Nothing was created. You can close this page.</p>
      </Centered>
    )
  return (
    <Centered title="Log in on the command line">
      <UserChangeNotice />
      <p class="wrap">
        The command <code>rushes login --web</code> on this computer asks for an API key.
      </p>
      <dl class="facts">
        <dt>Account</dt>
        <dd class="wrap">{account.name}</dd>
        <dt>Signed in as</dt>
        <dd class="wrap">{email}</dd>
        <dt>New key</dt>
        <dd class="wrap">{login.name}</dd>
      </dl>
      {account.banned ? (
        <Notice tone="bad">
          This account is banned, so it cannot create keys. Ask the administrator of this service.
        </Notice>
      ) : (
        <Notice tone="warn">
          Continue only if you have just run this command. The key can spend the credits of the account.
        </Notice>
      )}
      {grant.error !== undefined && <Notice tone="bad">{messageOf(grant.error)}</Notice>}
      <div class="row">
        <Button
          kind="primary"
          disabled={account.banned}
          isBusy={grant.isBusy}
          onClick={() => void grant.run()}
        >
          Create the key
        </Button>
        <Button onClick={decline}>Cancel</Button>
      </div>
      <p class="hint">
        Not your account?{' '}
        <button type="button" class="text-button" onClick={leave}>
          Sign out
        </button>
      </p>
    </Centered>
  )
}

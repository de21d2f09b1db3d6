/** Page `#/login?…`: after a confirmation, creates a key for the `rushes` command on this computer. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type LoginGrant } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { messageOf, request } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { Notice } from '../components/notice.js'
import { toastError } from '../components/toast.js'
import { useAction } from '../resource.js'
import { linkTo } from '../routes.js'
import { signOut, useSession } from '../session.js'
import { Centered } from '../shell/centered.js'

export function LoginPage({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const login = readLoginQuery(query)
  if (login === undefined)
    return (
      <Centered title="Sign in the CLI">
        <Notice tone="bad">This URL is incomplete. Nothing was created.</Notice>
        <p>Run the command again. It opens this page with a complete URL:</p>
        <CodeBlock code="rushes login --web" label="Command" />
        <LinkButton href={linkTo('runs')}>Go to Runs</LinkButton>
      </Centered>
    )
  return <Confirmation login={login} />
}

type LoginStep = 'asking' | 'returning' | 'declined'

function Confirmation({ login }: { readonly login: LoginQuery }) {
  const { email, account } = useSession()
  const [step, setStep] = useState<LoginStep>('asking')
  const { challenge, name } = login
  const grant = useAction(
    () => request<LoginGrant>('POST', CONSOLE_PATHS.logins, { body: { challenge, name } }),
    {
      // If the user has left this page, the code is not used and no key is created.
      onDone: ({ code }) => {
        if (step !== 'asking') return
        setStep('returning')
        location.assign(returnAddress(login, code))
      },
    },
  )
  const leave = () => signOut().catch(toastError)
  const decline = () => {
    setStep('declined')
    location.assign(declinedAddress(login))
  }
  if (step === 'returning')
    return (
      <Centered title="Go back to the terminal">
        <p>The CLI receives its key now. You can close this page.</p>
      </Centered>
    )
  if (step === 'declined')
    return (
      <Centered title="Go back to the terminal">
        <p>Nothing was created. You can close this page.</p>
      </Centered>
    )
  return (
    <Centered title="Sign in the CLI">
      <p>The CLI is requesting an API key.</p>
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
          This account is banned and cannot create keys. Ask the administrator of this service.
        </Notice>
      ) : (
        <Notice tone="warn">
          Continue only if you have just run <code>rushes login --web</code> on this computer. The key can
          spend the credits of the account.
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
          Create key
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

/** Parameters in the URL that `rushes login --web` opens. */
interface LoginQuery {
  readonly port: number
  readonly challenge: string
  readonly state: string
  /** Name of the new key, such as `rushes on laptop`. */
  readonly name: string
}

/** Parses the parameters. Returns undefined if the URL was not made by the command. */
export function readLoginQuery(query: Readonly<Record<string, string>>): LoginQuery | undefined {
  const { port = '', challenge = '', state = '', name = '' } = query
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) return undefined
  // SHA-256 of the verifier, as base64url.
  if (!/^[\w-]{43}$/.test(challenge)) return undefined
  if (!/^[\w-]{8,200}$/.test(state)) return undefined
  // Create the key with exactly the name that the user sees.
  const printableName = printable(name).trim()
  if (printableName === '' || name.length > 100) return undefined
  return { port: Number(port), challenge, state, name: printableName }
}

/** URL of the command's local server. The host is always this computer. */
const addressOf = ({ port, state }: LoginQuery, result: Readonly<Record<string, string>>): string =>
  `http://127.0.0.1:${port}/?${new URLSearchParams({ ...result, state })}`

export const returnAddress = (login: LoginQuery, code: string): string => addressOf(login, { code })

/** URL that tells the command that the user declined. */
const declinedAddress = (login: LoginQuery): string => addressOf(login, { error: 'access_denied' })

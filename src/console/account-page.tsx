/** The account: password, sessions, and the users, who may all do the same. */
import { MIN_PASSWORD_LENGTH } from '../protocol/limits.js'
import { type Assets, Page } from './layout.js'
import { Input, Notice, Time } from './parts.js'

export interface ShownSession {
  readonly id: number
  readonly isCurrent: boolean
  readonly usedAtMs: number
  readonly address: string | undefined
  readonly userAgent: string | undefined
}

export interface ShownUser {
  readonly email: string
  readonly hasPassword: boolean
}

export interface AccountView {
  readonly assets: Assets
  /** Email of the user. */
  readonly user: string
  readonly account: string
  /** Whether a link began the session: the password can be set without the current one. */
  readonly canSetPassword: boolean
  readonly hasPassword: boolean
  readonly sessions: readonly ShownSession[]
  readonly users: readonly ShownUser[]
  /** A sentence about what was just done. */
  readonly note?: string | undefined
  readonly problem?: string | undefined
}

export const AccountPage = (props: AccountView) => (
  <Page
    assets={props.assets}
    path="/account"
    title="Account"
    about={`${props.user}, account ${props.account}`}
  >
    {props.note && <Notice tone="good" title={props.note} />}
    <div class="columns even">
      <PasswordForm {...props} />
      <Sessions {...props} />
    </div>
    <Users {...props} />
  </Page>
)

const PasswordForm = ({ canSetPassword, hasPassword, problem }: AccountView) => (
  <form method="post" action="/api/auth/password" class="card form stack">
    <h2>{hasPassword ? 'Change the password' : 'Set a password'}</h2>
    {!hasPassword && <p class="about">With a password you can sign in again without a link.</p>}
    {problem && <Notice tone="bad" title={problem} />}
    {!canSetPassword && (
      <Input
        name="current"
        label="Current password"
        type="password"
        autocomplete="current-password"
        required
      />
    )}
    <Input
      name="password"
      label="New password"
      hint={`At least ${MIN_PASSWORD_LENGTH} characters. All other sessions end.`}
      type="password"
      autocomplete="new-password"
      minLength={MIN_PASSWORD_LENGTH}
      required
    />
    <div class="row">
      <button type="submit" class="button primary">
        Save
      </button>
    </div>
  </form>
)

const Sessions = ({ sessions }: AccountView) => (
  <section class="card form stack">
    <h2>Sessions</h2>
    <ul class="items">
      {sessions.map(({ id, isCurrent, usedAtMs, address, userAgent }) => (
        <li key={id} class="wrap">
          {userAgent ?? 'Unknown program'}
          <small>
            {isCurrent ? 'this session' : <Time ms={usedAtMs} />}
            {address && `, ${address}`}
          </small>
        </li>
      ))}
    </ul>
    <p class="about">A session ends seven days after its last use.</p>
    <form method="post" action="/api/auth/sign-out" class="row">
      <button type="submit" class="button">
        Sign out
      </button>
      <button type="submit" class="button" name="everywhere" value="true">
        Sign out everywhere
      </button>
    </form>
  </section>
)

const Users = ({ users }: AccountView) => (
  <section class="card form stack" id="users">
    <h2>Users</h2>
    <p class="about">All users of the account have the same rights.</p>
    <ul class="items">
      {users.map(({ email, hasPassword }) => (
        <li key={email} class="wrap">
          <bdi>{email}</bdi>
          {!hasPassword && <small>no password yet</small>}
        </li>
      ))}
    </ul>
    <p class="about">
      On the machine of the service, <code>rushes admin user</code> adds and removes users, and prints a link
      for one who lost the password.
    </p>
  </section>
)

/** Sign-in with a password or a link, and the page of an error. */
import { type Assets, PlainPage } from './layout.js'
import { Input, Notice } from './parts.js'

export interface SignInView {
  readonly assets: Assets
  readonly email: string
  readonly problem?: string | undefined
}

export const SignInPage = ({ assets, email, problem }: SignInView) => (
  <PlainPage assets={assets} title="Sign in">
    {problem && <Notice tone="bad" title={problem} />}
    <form method="post" action="/api/auth/sign-in" class="card form stack">
      <Input
        name="email"
        label="Email"
        inputMode="email"
        autocomplete="username"
        autocapitalize="none"
        value={email}
        required
        autofocus
      />
      <Input name="password" label="Password" type="password" autocomplete="current-password" required />
      <button type="submit" class="button primary">
        Sign in
      </button>
    </form>
    <p class="about">
      No password yet, or lost? <code>{'rushes admin user link <email>'}</code> prints a link that signs in
      once.
    </p>
  </PlainPage>
)

export interface LinkView {
  readonly assets: Assets
  readonly token: string
}

/** The link itself signs nobody in: programs that preview links would use it up. */
export const LinkPage = ({ assets, token }: LinkView) => (
  <PlainPage assets={assets} title="Sign in" about="This link signs in once.">
    <form method="post" action="/api/auth/link">
      <input type="hidden" name="token" value={token} />
      <button type="submit" class="button primary">
        Sign in with this link
      </button>
    </form>
    <p class="about">
      <a href="/sign-in">Sign in with a password</a>
    </p>
  </PlainPage>
)

export interface MessageView {
  readonly assets: Assets
  readonly title: string
  readonly message: string
}

export const MessagePage = ({ assets, title, message }: MessageView) => (
  <PlainPage assets={assets} title={title} about={message}>
    <a class="button" href="/runs">
      Show the runs
    </a>
  </PlainPage>
)

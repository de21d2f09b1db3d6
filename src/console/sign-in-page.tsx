/** Sign-in with a password or a link, and the page of an error. */
import { type Assets, PlainPage } from './layout.js'
import { Command, Field, Notice } from './parts.js'

export interface SignInView {
  readonly assets: Assets
  /** The path to go to then. */
  readonly next: string
  readonly email: string
  readonly problem?: string | undefined
}

export const SignInPage = ({ assets, next, email, problem }: SignInView) => (
  <PlainPage assets={assets} title="Sign in">
    {problem && <Notice tone="bad" title={problem} />}
    <form method="post" action="/api/auth/sign-in" class="card form stack">
      <input type="hidden" name="next" value={next} />
      <Field id="email" label="Email">
        <input
          id="email"
          name="email"
          type="text"
          inputMode="email"
          autocomplete="username"
          autocapitalize="none"
          value={email}
          required
          autofocus={email === ''}
        />
      </Field>
      <Field id="password" label="Password">
        <input
          id="password"
          name="password"
          type="password"
          autocomplete="current-password"
          required
          autofocus={email !== ''}
        />
      </Field>
      <button type="submit" class="button primary">
        Sign in
      </button>
    </form>
    <p class="about">
      No password yet, or lost? <Command text="rushes admin user link <email>" /> prints a link that signs in
      once.
    </p>
  </PlainPage>
)

export interface LinkView {
  readonly assets: Assets
  /** Undefined if it cannot be used again. */
  readonly token: string | undefined
  readonly problem?: string | undefined
}

/** The link itself signs nobody in: programs that preview links would use it up. */
export const LinkPage = ({ assets, token, problem }: LinkView) => (
  <PlainPage assets={assets} title="Sign in" about={token && 'This link signs in once.'}>
    {problem && <Notice tone="bad" title={problem} />}
    {token === undefined ? (
      <p class="about">
        <Command text="rushes admin user link <email>" /> prints another link.
      </p>
    ) : (
      <form method="post" action="/api/auth/link">
        <input type="hidden" name="token" value={token} />
        <button type="submit" class="button primary">
          Sign in with this link
        </button>
      </form>
    )}
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

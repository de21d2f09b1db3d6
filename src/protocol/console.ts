/**
 * The messages of the console's endpoints, shared by the local service and its page. All are JSON; errors have the shape of
 * section 7 of the interface. Times are ISO 8601 in UTC, amounts are credits, and an unknown value is null.
 */
import type { Kind } from './models.js'
import type { LocalStatus } from './run-state.js'

/** The authentication endpoints (docs/console.md, "Endpoints"). */
export const AUTH_PATHS = {
  /** POST `SignIn` → 200 `Session`, and the cookie. */
  signIn: '/api/auth/sign-in',
  /** POST `SignOut` → 204. */
  signOut: '/api/auth/sign-out',
  /** POST `NewPassword` → 200 `Session`; the other sessions of the user end. */
  password: '/api/auth/password',
  /** POST `LinkToken` → 200 `Session`, and the cookie. */
  link: '/api/auth/link',
  /** GET → 200 `Session`. */
  session: '/api/auth/session',
  /** POST `LoginCode` → 200 `NewKeyAnswer`: for `rushes login --web`, without a session. */
  login: '/api/auth/login',
} as const

/**
 * The `id` of the session that the page shows. All tabs of a browser share one cookie, and another user may have signed in: a
 * request with the id of another session is refused with 409 `session_changed`. Without the header nothing is compared.
 */
export const SESSION_HEADER = 'x-rushes-session'

export interface SignIn {
  readonly email: string
  readonly password: string
}

export interface SignOut {
  /** End all sessions of the user. */
  readonly everywhere?: boolean
}

export interface NewPassword {
  /** Not needed in a session that began with a link, until the password is set. */
  readonly current?: string
  readonly password: string
}

/** The token is in the fragment of the link, `<base>/#/link/<token>`, so that no log has it. */
export interface LinkToken {
  readonly token: string
}

export interface Session {
  /** For `SESSION_HEADER`; not the token. */
  readonly id: string
  readonly email: string
  readonly account: { readonly name: string; readonly balance: number; readonly banned: boolean }
  /** Whether the password can be set without the current one: the session began with a link. */
  readonly can_set_password: boolean
  readonly has_password: boolean
  readonly expires_at: string
  /** The names of the two models here. */
  readonly models: Readonly<Record<Kind, string>>
  /** The start of output URLs and of the examples on the page. */
  readonly base_url: string
}

/**
 * The console's endpoints. All need a session (401 `not_signed_in`), and changes an `Origin` of the service (403
 * `foreign_origin`). Objects of another account are 404 `not_found`, or `run_not_found`.
 */
export const CONSOLE_PATHS = {
  /** GET with the query `RunsQuery` → `RunsPage`. POST the body of a create → 201 `RunDetails`. */
  runs: '/api/console/runs',
  /** GET `?ids=a,b&after=<cursor>`, at most 100 ids → `RunsUpdate`: the current state of these runs, and newer runs. */
  updates: '/api/console/runs/updates',
  /** GET → `RunDetails`. */
  run: '/api/console/runs/:id',
  /**
   * GET → a small WebP of the first picture. 404 `not_found` when none can be made, 410 `gone` when the file was removed, 503
   * when one may be made later.
   */
  thumbnail: '/api/console/runs/:id/thumbnail',
  /** GET `?before=<cursor>` → `KeyList`: at most 100, newest first. POST `KeyTermsBody` with a name → 201 `NewKeyAnswer`. */
  keys: '/api/console/keys',
  /** PATCH `KeyTermsBody` → `ConsoleKey`. */
  key: '/api/console/keys/:id',
  /** POST → 200 `NewKeyAnswer`: the same key with another secret. The old one works for 24 h more. */
  rotate: '/api/console/keys/:id/rotate',
  /** GET with the query `EntriesQuery` → `EntriesPage`. */
  credits: '/api/console/credits',
  /** GET with `kind`, `key`, `from` and `to` of `EntriesQuery` → all entries as text/csv. */
  csv: '/api/console/credits.csv',
  /** GET `?days=30` → `Spend`. */
  spend: '/api/console/spend',
  /** GET → `SessionList`. */
  sessions: '/api/console/sessions',
  /** DELETE → 204. */
  session: '/api/console/sessions/:id',
  /** POST `LoginRequest` → 201 `LoginGrant`. */
  logins: '/api/console/logins',
} as const

/** All fields are optional. */
export interface RunsQuery {
  /** The cursor of the page before; the newest first. */
  readonly before?: string
  /** 1 to 100; 50. */
  readonly limit?: string
  readonly status?: LocalStatus
  readonly kind?: Kind
  readonly model?: string
  /** The id of a key, or `console` for the runs that were created on the page. */
  readonly key?: string
  /** In the first 1,000 characters of the prompt, in any case. */
  readonly search?: string
}

export interface RunOutput {
  /** Absolute, as the API gives it. */
  readonly url: string
  /** Relative to the service, without a slash at the start. */
  readonly path: string
  readonly name: string
  readonly content_type: string
  readonly bytes: number
  readonly sha256: string
}

export interface RunSummary {
  readonly id: string
  readonly kind: Kind
  readonly model: string
  readonly status: LocalStatus
  /** Its first 500 characters. */
  readonly prompt: string
  readonly aspect_ratio: string | null
  /** Null for a run that was created on the page, or by `--local`. */
  readonly key: { readonly id: number; readonly name: string } | null
  readonly price: number
  readonly outputs: readonly RunOutput[]
  /** Relative to the service, without a slash at the start. Null when it makes none: the page then shows the output itself. */
  readonly thumbnail: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly created_at: string
  readonly started_at: string | null
  readonly finished_at: string | null
}

export interface RunsPage {
  /** With a filter there may be fewer than the limit, or none, and more to come. */
  readonly runs: readonly RunSummary[]
  /** For `before` of the next page; null at the end. */
  readonly next: string | null
  /** For `after` of updates: the newest run of the account when this was read. */
  readonly latest: string
}

export interface RunsUpdate {
  /** The runs of `ids`. */
  readonly changed: readonly RunSummary[]
  /** Runs after the cursor, the newest first; at most 100, and then `next` is not null. */
  readonly added: readonly RunSummary[]
  readonly next: string | null
  readonly latest: string
  readonly balance: number
}

/** A time at which a worker took the run from the queue, with its outcome. */
export interface RunAttempt {
  readonly started_at: string
  /** Null until it has ended. */
  readonly ended_at: string | null
  /** `crashed`: the renderer ended. `returned`: the worker shut down. Null until it has ended. */
  readonly result: 'succeeded' | 'failed' | 'crashed' | 'returned' | null
}

export interface RunDetails extends RunSummary {
  /** The whole input; images that were sent as data are `{sha256, bytes, content_type}`. */
  readonly input: Readonly<Record<string, unknown>>
  readonly attempts: readonly RunAttempt[]
  /** The run object of the API. */
  readonly service: Readonly<Record<string, unknown>>
}

export interface ConsoleKey {
  readonly id: number
  readonly name: string
  /** The first characters of the key; null for one that was created before they were kept. */
  readonly prefix: string | null
  readonly disabled: boolean
  readonly spent: number
  readonly spend_limit: number | null
  /** Runs. */
  readonly used: number
  readonly quota: number | null
  readonly allowed_ips: readonly string[] | null
  readonly expires_at: string | null
  /** As `20/10s`; set by an administrator. Null: the published one. */
  readonly rate: string | null
  readonly created_at: string
  /** To the minute. */
  readonly last_used_at: string | null
  /** Until when the secret before the last rotation works; null when it does not. */
  readonly rotates_until: string | null
}

export interface KeyList {
  readonly keys: readonly ConsoleKey[]
  /** For `before` of the next page; null at the end. */
  readonly next: string | null
}

/** The fields that are present are set; null lifts a limit. */
export interface KeyTermsBody {
  readonly name?: string
  readonly disabled?: boolean
  readonly spend_limit?: number | null
  readonly quota?: number | null
  readonly allowed_ips?: readonly string[] | null
  readonly expires_at?: string | null
}

export interface NewKeyAnswer {
  readonly key: ConsoleKey
  /** The secret, which is shown only now. */
  readonly api_key: string
}

export interface EntriesQuery {
  readonly before?: string
  /** 1 to 100; 100. */
  readonly limit?: string
  readonly kind?: 'added' | 'charge' | 'refund'
  readonly key?: string
  /** Days, as 2026-01-31, in UTC and included. */
  readonly from?: string
  readonly to?: string
}

export interface BalanceEntry {
  readonly sequence: number
  readonly kind: 'added' | 'charge' | 'refund'
  /** Negative for a charge or a removal. */
  readonly amount: number
  readonly run_id: string | null
  readonly key: { readonly id: number; readonly name: string } | null
  readonly created_at: string
}

export interface EntriesPage {
  readonly entries: readonly BalanceEntry[]
  readonly next: string | null
  readonly balance: number
}

/** Charges less refunds of each day (UTC), the oldest first, days without any included. */
export interface Spend {
  readonly days: readonly { readonly day: string; readonly credits: number; readonly runs: number }[]
}

export interface SessionList {
  readonly sessions: readonly {
    readonly id: number
    readonly current: boolean
    readonly created_at: string
    readonly last_used_at: string
    readonly address: string | null
    readonly user_agent: string | null
  }[]
}

/**
 * `rushes login --web` opens `<base>/#/login?port=<port>&challenge=<challenge>&state=<state>&name=<host>`. The page asks the
 * user, posts this, and goes to `http://127.0.0.1:<port>/?code=<code>&state=<state>`. The command then posts the code with the
 * verifier whose SHA-256 (base64url) the challenge is, and gets a key: the key itself passes through no URL and no page.
 */
export interface LoginRequest {
  readonly challenge: string
  /** The name of the key that is created. */
  readonly name: string
}

export interface LoginGrant {
  /** Valid once, for 60 s. */
  readonly code: string
}

export interface LoginCode {
  readonly code: string
  readonly verifier: string
}

/**
 * Request and response bodies of the console endpoints, shared by the local service and the console page. All bodies
 * are JSON. Errors have the format of section 7 of the interface. Times are ISO 8601 in UTC, amounts are in credits,
 * and an unknown value is null.
 */
import type { Kind, ModelDocument } from './models.js'
import type { LocalStatus } from './run-state.js'

/** Authentication endpoints (docs/console.md, "Endpoints"). */
export const AUTH_PATHS = {
  /** POST `SignIn` → 200 `Session`, and sets the session cookie. */
  signIn: '/api/auth/sign-in',
  /** POST `SignOut` → 204. */
  signOut: '/api/auth/sign-out',
  /** POST `NewPassword` → 200 `Session`. Ends the user's other sessions. */
  password: '/api/auth/password',
  /** POST `LinkToken` → 200 `Session`, and sets the session cookie. */
  link: '/api/auth/link',
  /** GET → 200 `Session`. */
  session: '/api/auth/session',
} as const

/**
 * Request header with the `id` of the session that the page shows. All tabs of a browser share one cookie, so another
 * user may have signed in. If the id does not match the cookie's session, the service responds with 409
 * `session_changed`. Without this header, the service does not compare the sessions.
 */
export const SESSION_HEADER = 'x-rushes-session'

export interface SignIn {
  readonly email: string
  readonly password: string
}

export interface SignOut {
  /** Ends all sessions of the user. */
  readonly everywhere?: boolean
}

export interface NewPassword {
  /** Current password. Optional in a session started by a sign-in link, until the password is set. */
  readonly current?: string
  readonly password: string
}

/** The token is in the fragment of the link, `<base>/#/link/<token>`, so that it does not appear in logs. */
export interface LinkToken {
  readonly token: string
}

export interface Session {
  /** Value for `SESSION_HEADER`. It is not the session token. */
  readonly id: string
  readonly email: string
  readonly account: { readonly name: string; readonly balance: number; readonly banned: boolean }
  /** True if the session was started by a sign-in link: the password can be set without the current one. */
  readonly can_set_password: boolean
  readonly has_password: boolean
  readonly expires_at: string
  /** Name of this service's default model, for each kind. */
  readonly models: Readonly<Record<Kind, string>>
  /** Base of the output URLs, and of the URLs in the page's examples. */
  readonly base_url: string
}

/**
 * Console endpoints. All of them need a session (otherwise 401 `not_signed_in`). Requests that change data also need
 * the service's own `Origin` (otherwise 403 `foreign_origin`).
 * For an object of another account, the service responds with 404 `not_found` or `run_not_found`.
 */
export const CONSOLE_PATHS = {
  /** GET → `ModelList`, with an ETag: the documents can be large, and change only when the service starts. */
  models: '/api/console/models',
  /** GET with the query `RunsQuery` → `RunsPage`. POST a create request → 201 `RunDetails`. */
  runs: '/api/console/runs',
  /** GET → `RunDetails`. */
  run: '/api/console/runs/:id',
  /**
   * GET → a WebP image of at most 384 pixels of the first image output. 404 `not_found` if the service cannot make a
   * thumbnail, 410 `gone` if the file was removed, 503 if one may be available later.
   */
  thumbnail: '/api/console/runs/:id/thumbnail',
  /** POST → 200 `RunDetails`. Cancels the run, unless it has ended. 404 `run_not_found`. */
  cancel: '/api/console/runs/:id/cancel',
  /** GET → the image at this index of `image_urls`, if it was sent as data. 404 `not_found`, 410 `gone`. */
  reference: '/api/console/runs/:id/references/:position',
  /**
   * GET `?before=<cursor>` → `KeyList`: at most 100 keys, newest first.
   * POST `KeyTermsBody` with a name → 201 `NewKeyAnswer`.
   */
  keys: '/api/console/keys',
  /** PATCH `KeyTermsBody` → `ConsoleKey`. */
  key: '/api/console/keys/:id',
  /** GET with the query `EntriesQuery` → `EntriesPage`. */
  credits: '/api/console/credits',
  /** GET with the fields `kind`, `key`, `from` and `to` of `EntriesQuery` → all matching entries as text/csv. */
  csv: '/api/console/credits.csv',
  /** GET `?days=30` → `Spend`. */
  spend: '/api/console/spend',
  /** GET → `SessionList`. */
  sessions: '/api/console/sessions',
  /** DELETE → 204. */
  session: '/api/console/sessions/:id',
} as const

export interface ModelList {
  readonly models: readonly [ModelDocument, ...(readonly ModelDocument[])]
}

/** All fields are optional. */
export interface RunsQuery {
  /** `next` cursor of the previous page. Runs are sorted newest first. */
  readonly before?: string
  /** 1 to 100; default 50. */
  readonly limit?: string
  readonly status?: LocalStatus
  readonly kind?: Kind
  readonly model?: string
  /** Id of a key, or `console` for runs created in the console. */
  readonly key?: string
  /** Case-insensitive search in the first 1,000 characters of the prompt. */
  readonly search?: string
}

export interface RunOutput {
  /** Absolute URL, the same as in the API. */
  readonly url: string
  /** Path relative to the service's base URL, without a leading slash. */
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
  /** From 0 to 1 while the process that answers renders the run. Null if it does not, or if the engine reports none. */
  readonly progress: number | null
  /** Number of jobs before it in the queue of the model's server, if that server tells it. */
  readonly queue_position: number | null
  /** First 500 characters of the prompt. */
  readonly prompt: string
  /** Of the input, or the default of the model; null if neither has one. */
  readonly aspect_ratio: string | null
  /** Null for a run created in the console or with `--local`. */
  readonly key: { readonly id: number; readonly name: string } | null
  /** Credits that were charged. */
  readonly price: number
  /** Whether the price was given back. */
  readonly is_refunded: boolean
  readonly outputs: readonly RunOutput[]
  /** Path, as in `RunOutput`. Null if the service makes no thumbnail of this run: the page then shows the output. */
  readonly thumbnail: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly created_at: string
  readonly started_at: string | null
  readonly finished_at: string | null
}

export interface RunsPage {
  /** With a filter, a page may have fewer runs than the limit, or none, even if `next` is not null. */
  readonly runs: readonly RunSummary[]
  /** Value of `before` for the next page; null on the last page. */
  readonly next: string | null
  /** Current state of the runs in `ids`. */
  readonly changed: readonly RunSummary[]
  readonly balance: number
}

export interface RunDetails extends RunSummary {
  /** Complete input. An image that was sent as data is replaced with `{sha256, bytes, content_type}`. */
  readonly input: Readonly<Record<string, unknown>>
  /** Number of renders whose renderer or worker crashed. */
  readonly crashes: number
  /** Run object, as in the API. */
  readonly service: Readonly<Record<string, unknown>>
}

export interface LoggedKey {
  readonly id: number
  readonly name: string
  /** First characters of the secret. Null for a key created before the service stored them. */
  readonly prefix: string | null
}

export interface ConsoleKey extends LoggedKey {
  readonly disabled: boolean
  readonly spent: number
  readonly spend_limit: number | null
  /** Number of runs created with this key. */
  readonly used: number
  readonly quota: number | null
  readonly allowed_ips: readonly string[] | null
  readonly expires_at: string | null
  /** Rate limit such as `20/10s`, set by an administrator. Null for the published rate limit. */
  readonly rate: string | null
  readonly created_at: string
  /** Accurate to the minute. */
  readonly last_used_at: string | null
}

export interface KeyList {
  readonly keys: readonly ConsoleKey[]
  /** Value of `before` for the next page; null on the last page. */
  readonly next: string | null
}

/** Omitted fields are not changed. Null removes a limit. */
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
  /** The secret. No later response contains it. */
  readonly api_key: string
}

export interface EntriesQuery {
  readonly before?: string
  /** 1 to 100; default 100. */
  readonly limit?: string
  readonly kind?: 'added' | 'charge' | 'refund'
  readonly key?: string
  /** First day to include, such as 2026-01-31, in UTC. */
  readonly from?: string
  /** Last day to include, in the same format. */
  readonly to?: string
}

export interface BalanceEntry {
  readonly sequence: number
  readonly kind: 'added' | 'charge' | 'refund'
  /** Credits. Negative for a charge, and for credits that an administrator removed. */
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

/** Charges minus refunds for each UTC day, oldest first. Days without charges are included. */
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

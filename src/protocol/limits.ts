/** The published limits and intervals. Source: the interface's sections 2.4, 4.2, 7 and 8. */

/** Requests per API key on the runs endpoints, create and status together. */
export const RUNS_LIMIT = { requests: 20, windowMs: 10_000 } as const

/** The authentication endpoints together, per client address and per email. */
export const AUTH_LIMIT = { requests: 5, windowMs: 60_000 } as const

/** The session check, per session. */
export const SESSION_CHECK_LIMIT = { requests: 60, windowMs: 60_000 } as const

/** The recommended polling interval. */
export const POLL_INTERVAL_MS = { min: 1_000, max: 2_000 } as const

/** Waits before the retries after a 429. */
export const RATE_LIMITED_WAITS_MS = [1_000, 2_000, 4_000] as const

/** The longest request body, which the interface leaves open: the local service has this limit (CONTRACT 9). */
export const MAX_BODY_BYTES = 64 * 1024 * 1024

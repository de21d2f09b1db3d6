/** Limits for connections, so that slow or idle ones do not use up the service. */

export interface HttpLimits {
  /** From the connection or the first byte of a request to the end of its headers. */
  readonly headersMs: number
  /** How often that is checked. */
  readonly checkIntervalMs: number
  /** A connection on which nothing moves for so long is closed. */
  readonly idleMs: number
  /** For one whole request: an hour for a body of 64 MiB is 18 KiB a second. */
  readonly requestMs: number
  /** At least `bodyBytes` of a body must arrive in every `bodyMs`, unless it ends. */
  readonly bodyMs: number
  readonly bodyBytes: number
  readonly headerBytes: number
  /** Further connections are closed at once. */
  readonly connections: number
}

export const HTTP_LIMITS: HttpLimits = {
  headersMs: 15_000,
  checkIntervalMs: 5_000,
  idleMs: 120_000,
  requestMs: 3_600_000,
  bodyMs: 30_000,
  bodyBytes: 16_384,
  headerBytes: 16_384,
  connections: 1_000,
}

/** How much of the service one connection may hold, and for how long. Slow is fine; holding on to nothing is not. */

export interface HttpLimits {
  /** From the first byte of a request, or from the connecting, to the end of its headers. */
  readonly headersMs: number
  /** How often connections are looked at for that. */
  readonly checkIntervalMs: number
  /** A connection on which nothing moves is given up. */
  readonly idleMs: number
  /** For one request in all, its body included: an hour for 64 MiB is 18 KiB a second. */
  readonly requestMs: number
  /** A body must bring `bodyBytes` in every `bodyMs`, or come to its end. */
  readonly bodyMs: number
  readonly bodyBytes: number
  readonly headerBytes: number
  /** Further ones are closed at once. */
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

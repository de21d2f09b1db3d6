/** The contract of a rate limiter. It is asynchronous, so that several nodes can share one. */

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface RateLimiter {
  /**
   * Counts one request of this key; false when it would be more than the limit in some window. A refused request does not
   * count. A request stops counting exactly one window after it was made.
   */
  take(key: string, limit: RateLimit): Promise<boolean>
  /** One request that counts under each of these keys, or under none of them when one has reached the limit. */
  takeAll(keys: readonly string[], limit: RateLimit): Promise<boolean>
}

/**
 * How often a download is retried. Pure, tested by table.
 *
 * Five retries after a failure. The count starts again with every mebibyte beyond the furthest byte so far: otherwise a
 * large file would never arrive over a connection that breaks every hundred megabytes. Bytes that are downloaded a second
 * time do not count as progress, and the total number of tries is limited.
 */

export const PROGRESS_BYTES = 1_048_576
/** 2 GiB in pieces of 21 MiB. */
export const MAX_TRIES = 100

export interface RetryBudget {
  /** In a row, without progress. */
  readonly failures: number
  /** Over all tries. */
  readonly tries: number
  /** Useful bytes when the count last started. */
  readonly furthestBytes: number
}

/** `usefulBytes` is what an earlier command left. */
export const newRetryBudget = (usefulBytes: number): RetryBudget => ({
  failures: 0,
  tries: 0,
  furthestBytes: usefulBytes,
})

/** `usefulBytes` is what the failed try leaves to resume from. */
export function afterFailedTry(
  { failures, tries, furthestBytes }: RetryBudget,
  usefulBytes: number,
): RetryBudget {
  const hasProgress = usefulBytes >= furthestBytes + PROGRESS_BYTES
  return {
    failures: hasProgress ? 1 : failures + 1,
    tries: tries + 1,
    furthestBytes: hasProgress ? usefulBytes : furthestBytes,
  }
}

/**
 * How long a download that fails again and again is gone on with: five more tries after a failure. On a line that breaks
 * every hundred megabytes two gigabytes would never arrive so; therefore the count begins anew with every mebibyte that is
 * further than any try before has come. What a host makes us fetch twice is no progress, and there is an end in any
 * case. Pure, tested by table.
 */

export const PROGRESS_BYTES = 1_048_576
/** 2 GiB in pieces of 21 MiB. */
export const MOST_TRIES = 100

export interface Patience {
  /** In a row, without progress. */
  readonly failures: number
  /** Over all tries. */
  readonly tries: number
  /** So much was there when the count last began. */
  readonly furthestBytes: number
}

/** `usefulBytes` is what an earlier command has left. */
export const patienceAt = (usefulBytes: number): Patience => ({
  failures: 0,
  tries: 0,
  furthestBytes: usefulBytes,
})

/** After a failed try that leaves so many bytes to go on from. */
export function afterFailure({ failures, tries, furthestBytes }: Patience, usefulBytes: number): Patience {
  const hasProgress = usefulBytes >= furthestBytes + PROGRESS_BYTES
  return {
    failures: hasProgress ? 1 : failures + 1,
    tries: tries + 1,
    furthestBytes: hasProgress ? usefulBytes : furthestBytes,
  }
}

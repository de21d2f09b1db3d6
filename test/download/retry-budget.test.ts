import { describe, expect, it } from 'vitest'
import { afterFailure, PROGRESS_BYTES, patienceAt } from '../../src/download/retry-budget.js'

/** The failures in a row after tries that leave so many mebibytes each. */
const failures = (atFirst: number, ...mebibytes: number[]): readonly number[] => {
  let patience = patienceAt(atFirst * PROGRESS_BYTES)
  return mebibytes.map((each) => {
    patience = afterFailure(patience, each * PROGRESS_BYTES)
    return patience.failures
  })
}

describe('failures in a row', () => {
  it.each<[string, readonly number[], readonly number[]]>([
    ['are counted', [0, 0, 0, 0], [1, 2, 3]],
    ['are counted anew when a mebibyte came', [0, 0, 0, 1, 1, 2], [1, 2, 1, 2, 1]],
    ['are not for a little', [0, 0, 0.5, 0.9, 1.1, 1.2], [1, 2, 3, 1, 2]],
    ['are not for what an earlier command had', [10, 10, 10.5, 11], [1, 2, 1]],
    ['are not for what is fetched again', [0, 5, 0, 4, 5, 6], [1, 2, 3, 4, 1]],
  ])('%s', (_, [atFirst = 0, ...mebibytes], expected) => {
    expect(failures(atFirst, ...mebibytes)).toEqual(expected)
  })
})

it('counts all tries', () => {
  let patience = patienceAt(0)
  for (let at = 1; at <= 4; at++) patience = afterFailure(patience, at * PROGRESS_BYTES)
  expect(patience).toEqual({ failures: 1, tries: 4, furthestBytes: 4 * PROGRESS_BYTES })
})

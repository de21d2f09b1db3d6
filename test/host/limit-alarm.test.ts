import { describe, expect, it } from 'vitest'
import { limitAlarm } from '../../src/host/limit-alarm.js'
import { createManualClock } from '../support/clock.js'

/** Runs an alarm of 60 s. The process is suspended for `gapMs` after `atMs`. Returns what the alarm said, and when. */
async function ring(atMs: number, gapMs: number) {
  const clock = createManualClock()
  let sleptMs = 0
  const monotonic = () => clock.monotonic() + sleptMs
  const rung: [boolean, number][] = []
  limitAlarm({ ...clock, monotonic }, 60_000, (wasSuspended) => rung.push([wasSuspended, monotonic()]))
  await clock.advance(atMs)
  sleptMs = gapMs
  await clock.advance(60_000)
  return rung
}

describe('the alarm of a limit', () => {
  it.each<[string, number, number, [boolean, number][]]>([
    ['is on time without a gap', 0, 0, [[false, 60_000]]],
    ['notices a gap in which the limit passed', 12_000, 3_600_000, [[true, 3_615_000]]],
    ['does not count a gap long before the limit', 12_000, 20_000, [[false, 60_000]]],
    ['notices a gap that ended directly before the limit', 12_000, 43_000, [[true, 60_000]]],
    ['does not count a pause of a busy process', 58_000, 8_000, [[false, 68_000]]],
  ])('%s', async (_, atMs, gapMs, rung) => {
    expect(await ring(atMs, gapMs)).toEqual(rung)
  })
})

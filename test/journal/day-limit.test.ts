/** The sum of the estimates of 24 hours, and its limit. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Intent, type IntentRow, Journal } from '../../src/journal/index.js'
import { built } from '../support/built.js'
import { startNode, temporaryFolder } from '../support/index.js'
import { runState } from '../support/runs.js'

const HOUR_MS = 3_600_000
const usd = (units: number) => ({ millionths: units * 1_000_000, currency: 'USD' })

function openJournal() {
  const clock = { nowMs: Date.UTC(2026, 0, 1) }
  const journal = new Journal({ folder: temporaryFolder(), now: () => clock.nowMs, warn: expect.unreachable })
  const intend = (units: number | undefined, more: Partial<Intent> = {}) =>
    journal.intend('best effort', {
      address: 'https://a.example',
      profile: 'default',
      kind: 'image',
      model: 'acme/still-1',
      input: { prompt: 'a fox' },
      estimate: units === undefined ? undefined : usd(units),
      dayLimit: usd(10),
      ...more,
    }) as IntentRow
  return { clock, journal, intend }
}

describe('a create', () => {
  it('is refused when the sum of 24 hours would pass the limit, and names the settings of the limit', () => {
    const { clock, intend, journal } = openJournal()
    intend(6)
    clock.nowMs += HOUR_MS
    intend(3)
    const message =
      'The estimate is 4 USD, and that of the last 24 hours 9 USD, but maxCostPerDay allows 10 USD: its create was not sent.'
    const hint = expect.stringMatching(/^To change the limit: /)
    expect(() => intend(4)).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2, message, hint }))
    intend(1)
    expect(() => intend(0.000001)).toThrow(/^The estimate is 0\.000001 USD/)
    clock.nowMs += 23 * HOUR_MS
    intend(4)
    expect(journal.list({})).toHaveLength(4)
  })

  it('that was sent already is called so, and not refused because of its own estimate', () => {
    const { intend } = openJournal()
    intend(6, { requestId: 'fox' })
    expect(() => intend(6, { requestId: 'fox' })).toThrow(
      /^A create with the request id "fox" was sent before/,
    )
  })

  it('counts until it is definitely not sent, also if its outcome is unknown or its run has failed', () => {
    const { intend, journal } = openJournal()
    const unsent = intend(4)
    const unknown = intend(3)
    journal.markUnconfirmed(unknown, { code: 'submission_unknown', message: 'x' })
    journal.accepted(intend(3), { id: 'r1' })
    const state = runState({ id: 'r1', status: 'failed', phase: 'failed', failure: 'x' })
    journal.status('https://a.example', { state })
    expect(() => intend(1)).toThrow('last 24 hours 10 USD')
    journal.unsent(unsent)
    intend(4)
  })

  it('is compared with those in its currency, of all addresses; what is free always passes', () => {
    const { intend } = openJournal()
    intend(9, { estimate: { millionths: 9e6, currency: 'credits' } })
    intend(10, { address: 'local' })
    expect(() => intend(1)).toThrow('last 24 hours 10 USD')
    intend(0)
    expect(() => intend(undefined)).toThrow('acme/still-1 has no price, so maxCostPerDay cannot be checked.')
  })
})

it('two processes at once never pass the limit together', async () => {
  const program = await built(new URL('./writer.ts', import.meta.url))
  const folder = temporaryFolder()
  const path = join(folder, 'journal.db')
  const rounds = 50
  const writers = ['a', 'b'].map((name) => startNode([program, path, name, String(rounds), 'race'], ''))
  await Promise.all(writers.map((writer) => writer.prints('stdout', /ready/)))
  for (const { stdin } of writers) stdin.end(String(Date.now() + 100))
  for (const { ended } of writers) expect(await ended).toMatchObject({ code: 0, stderr: '' })
  const journal = new Journal({ folder, now: Date.now, warn: expect.unreachable })
  const currencies = journal.list({}).map(({ estimate }) => estimate?.currency)
  expect(new Set(currencies).size).toBe(rounds)
  expect(currencies).toHaveLength(rounds)
  journal.close()
})

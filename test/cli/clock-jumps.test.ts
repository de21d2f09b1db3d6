/** A wall clock that is set while a command waits: a time server, a user, a machine that was asleep. */
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { type CliService, createCliService, rowsOf } from '../support/index.js'

const HOUR_MS = 3_600_000

/** The clock jumps with the nth look, when the run is on its way. */
function jumpingAt(look: number, service: CliService, byMs: number): Fetch {
  let looks = 0
  return (request) => {
    if (request.method === 'GET' && ++looks === look) service.clock.jump(byMs)
    return service.fetch(request)
  }
}

describe.each([
  ['forward', 6 * HOUR_MS],
  ['a year back', -365 * 24 * HOUR_MS],
])('a clock that jumps %s', (_, byMs) => {
  it('neither ends a wait nor makes it longer', async () => {
    const service = await createCliService()
    const before = service.clock.monotonic()
    const { code, stderr } = await service.run('run image "a fox" --timeout 60s', {
      fetch: jumpingAt(1, service, byMs),
    })
    expect(code).toBe(0)
    expect(service.clock.monotonic() - before).toBeLessThan(60_000)
    // What is said of time is what passed.
    const times = [...stderr.matchAll(/\((.*)\)/g)].map(([, seconds]) => seconds)
    expect(times).not.toEqual([])
    for (const seconds of times) expect(seconds).toMatch(/^\d+ s$/)
    expect(rowsOf(service.home)[0]?.elapsedMs).toBeLessThan(60_000)
  })

  it('leaves the journal its order: the last run is the one created last', async () => {
    const service = await createCliService()
    await service.run('run image before --no-wait')
    service.clock.jump(byMs)
    const { stdout } = await service.run('run image after --no-wait')
    expect((await service.run('wait --last --json')).stdout).toContain(stdout.trim())
    const table = await service.run('list', { tty: { stdout: true } })
    expect(table.code).toBe(0)
    expect(table.stdout).not.toMatch(/-\d|NaN/)
  })
})

/** A wall clock that is set while a command waits: a time server, a user, a machine that was asleep. */
import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../../src/host/http.js'
import { type CliService, createCliService, outputOf } from '../support/index.js'

const HOUR_MS = 3_600_000

/** The clock jumps with the first status request. */
function jumping({ clock }: CliService, byMs: number) {
  let hasJumped = false
  return ({ method }: HttpRequest) => {
    if (method === 'GET' && !hasJumped) clock.jump(byMs)
    hasJumped ||= method === 'GET'
  }
}

describe.each([
  ['forward', 6 * HOUR_MS],
  ['a year back', -365 * 24 * HOUR_MS],
])('a clock that jumps %s', (_, byMs) => {
  it('does not change how long a command waits, or says that it has waited', async () => {
    const service = await createCliService()
    const before = service.clock.monotonic()
    const { code, stderr } = await service.run('run image "a fox" --timeout 60s', {
      onRequest: jumping(service, byMs),
    })
    expect(code).toBe(0)
    expect(service.clock.monotonic() - before).toBeLessThan(60_000)
    const times = [...stderr.matchAll(/\((.*)\)/g)].map(([, seconds]) => seconds)
    expect(times).not.toEqual([])
    for (const seconds of times) expect(seconds).toMatch(/^\d+ s$/)
    expect(service.rows()[0]?.elapsedMs).toBeLessThan(60_000)
  })

  it('does not make the time that a run has taken negative', async () => {
    const service = await createCliService()
    await service.create()
    service.clock.jump(byMs)
    expect(outputOf(await service.run('status --last'))).toContain('succeeded')
    expect(service.rows()[0]?.elapsedMs).toBeGreaterThanOrEqual(0)
  })

  it('does not change which run was created last', async () => {
    const service = await createCliService()
    await service.create()
    service.clock.jump(byMs)
    const [id] = await service.create()
    expect(outputOf(await service.run('wait --last --json'))).toContain(id)
    const table = await service.run('list', { tty: { stdout: true } })
    expect(table.code).toBe(0)
    expect(table.stdout).not.toMatch(/-\d|NaN/)
  })
})

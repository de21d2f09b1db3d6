import { expect, it } from 'vitest'
import { PROBLEMS, problemByStatus, problemOf } from '../../src/protocol/problems.js'

it('the table of codes holds every code of the interface, in its order, with its status and exit code', () => {
  const rows = Object.entries(PROBLEMS).map(([code, row]) => [row.status, code, row.exit])
  expect(rows).toEqual([
    [400, 'invalid_json', 3],
    [400, 'missing_model', 3],
    [400, 'missing_input', 3],
    [400, 'invalid_input', 3],
    [400, 'model_not_found', 3],
    [401, 'missing_api_key', 4],
    [401, 'invalid_api_key', 4],
    [402, 'insufficient_balance', 5],
    [403, 'api_key_spend_limit_exceeded', 5],
    [403, 'ip_not_allowed', 5],
    [404, 'run_not_found', 6],
    [429, 'RATE_LIMITED', 7],
    [429, 'USAGE_EXCEEDED', 5],
  ])
})

it('the table of codes says of each code what caused it, and has a hint of its own', () => {
  const rows = Object.values(PROBLEMS)
  for (const { cause, hint } of rows) {
    expect(cause).toMatch(/^[A-Z].*\.$/)
    expect(hint).toMatch(/^[A-Z].*[.}]$/)
  }
  expect(new Set(rows.map(({ hint }) => hint)).size).toBe(rows.length)
  expect(PROBLEMS.RATE_LIMITED.cause).toMatch(/rate limit exceeded/i)
})

it.each(['', 'toString', '__proto__', 'rate_limited', undefined])(
  'the table of codes does not know %j',
  (code) => {
    expect(problemOf(code)).toBeUndefined()
  },
)

it('a 403 without a code may be a banned account', () => {
  expect(problemByStatus(403).hint).toContain('banned')
})

import { describe, expect, test } from 'vitest'
import { creditsOf } from '../../../src/protocol/price.js'
import { PREVIEW_DOCUMENTS } from '../../../src/service/models/served-model.js'
import { type AccountState, checkBudget } from '../../../src/service/rules/key-checks.js'

test.each([
  ['image', {}, 1],
  ['image', { quality: 'high' }, 2],
  ['video', {}, 5],
  ['video', { duration: '10' }, 10],
  ['video', { resolution: '1080p' }, 10],
  ['video', { resolution: '1080p', duration: '10' }, 20],
] as const)('%s %o costs %i', (kind, input, price) => {
  expect(creditsOf(PREVIEW_DOCUMENTS[kind], { prompt: 'a fox', ...input })).toBe(price)
})

describe('a price of 5', () => {
  const bare: AccountState = {
    ...{ spent: 0, spendLimit: undefined, used: 0, quota: undefined, balance: 5 },
    ...{ disabled: false, expiresAtMs: undefined, banned: false },
  }
  test.each([
    ['is covered by a balance of 5', {}, undefined],
    ['is not covered by a balance of 4', { balance: 4 }, 'insufficient_balance'],
    ['may reach a spend limit exactly', { spent: 5, spendLimit: 10 }, undefined],
    ['may not exceed a spend limit', { spent: 6, spendLimit: 10 }, 'api_key_spend_limit_exceeded'],
    ['may use up a quota', { used: 2, quota: 3 }, undefined],
    ['may not exceed a quota', { used: 3, quota: 3 }, 'USAGE_EXCEEDED'],
    ['is refused for a key that has just expired', { expiresAtMs: 1_000 }, 'invalid_api_key'],
    ['is accepted for a key that expires later', { expiresAtMs: 1_001 }, undefined],
  ])('%s', (_name, standing, code) => {
    const outcome = () => checkBudget({ ...bare, ...standing }, 5, 1_000)
    if (code === undefined) expect(outcome).not.toThrow()
    else expect(outcome).toThrow(expect.objectContaining({ code }))
  })
})

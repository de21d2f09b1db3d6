import { expect, test } from 'vitest'
import { createBodyBudget, FREE_BYTES } from '../../../src/service/http/body-budget.js'

const TOTAL = 1_000_000

/** Takes as much as this owner gets, in small parts. */
function fill(budget: ReturnType<typeof createBodyBudget>, owner: number): number {
  let held = FREE_BYTES
  while (budget.take(owner, held, 1_000)) held += 1_000
  return held - FREE_BYTES
}

test('one account gets half, and each further one half of the rest, so that there is always some left', () => {
  const budget = createBodyBudget(TOTAL)
  expect([1, 2, 3, 4].map((owner) => fill(budget, owner))).toEqual([500_000, 250_000, 125_000, 62_000])
})

test('small bodies are free', () => {
  const budget = createBodyBudget(TOTAL)
  for (const owner of [1, 2, 3]) fill(budget, owner)
  for (let count = 0; count < 1_000; count++) expect(budget.take(9, 0, FREE_BYTES)).toBe(true)
})

test('what is given back can be taken by others', () => {
  const budget = createBodyBudget(TOTAL)
  const held = fill(budget, 1)
  budget.release(1, FREE_BYTES + held)
  expect(fill(budget, 2)).toBe(500_000)
})

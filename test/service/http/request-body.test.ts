import { expect, test } from 'vitest'
import { createBodyMemory, FREE_BYTES } from '../../../src/service/http/request-body.js'

const TOTAL = 1_000_000

/** Takes as much as this owner gets, in small parts. */
function fill(memory: ReturnType<typeof createBodyMemory>, owner: number): number {
  let used = FREE_BYTES
  while (memory.take(owner, used, 1_000)) used += 1_000
  return used - FREE_BYTES
}

test('one account gets half of the memory for bodies, and each further one half of the rest', () => {
  const memory = createBodyMemory(TOTAL)
  expect([1, 2, 3, 4].map((owner) => fill(memory, owner))).toEqual([500_000, 250_000, 125_000, 62_000])
})

test('small bodies do not count against the memory for bodies', () => {
  const memory = createBodyMemory(TOTAL)
  for (const owner of [1, 2, 3]) fill(memory, owner)
  for (let count = 0; count < 1_000; count++) expect(memory.take(9, 0, FREE_BYTES)).toBe(true)
})

test('released memory for bodies can be used by other accounts', () => {
  const memory = createBodyMemory(TOTAL)
  const used = fill(memory, 1)
  memory.release(1, FREE_BYTES + used)
  expect(fill(memory, 2)).toBe(500_000)
})

import { expect, test } from 'vitest'
import { BodyMemory, SMALL_BYTES } from '../../../src/service/http/request-body.js'

test('bodies take memory until it is used up, and release it', () => {
  const memory = new BodyMemory(1_000_000)
  expect(memory.take(600_000, 600_000)).toBe(true)
  expect(memory.take(600_000, 600_000)).toBe(false)
  expect(memory.take(400_000, 400_000)).toBe(true)
  memory.release(600_000)
  expect(memory.take(600_000, 600_000)).toBe(true)
})

test('small bodies are accepted while large ones have used up the memory', () => {
  const memory = new BodyMemory(1_000_000)
  expect(memory.take(1_000_000, 1_000_000)).toBe(true)
  expect(memory.take(SMALL_BYTES, SMALL_BYTES)).toBe(true)
  expect(memory.take(1, SMALL_BYTES + 1)).toBe(false)
})

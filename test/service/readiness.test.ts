import { expect, test } from 'vitest'
import { createReadiness } from '../../src/service/http/app.js'
import { createManualClock } from '../support/index.js'

function createCheck() {
  const clock = createManualClock()
  let checks = 0
  let result: () => Promise<void> = async () => {}
  const checkDatabase = () => {
    checks++
    return result()
  }
  const become = (next: () => Promise<void>) => {
    result = next
  }
  let isFull = false
  const fill = (full: boolean) => {
    isFull = full
  }
  const isReady = createReadiness([checkDatabase], () => isFull, clock)
  return { clock, isReady, become, fill, checks: () => checks }
}

test('readiness checks write to the database at most once a second', async () => {
  const { clock, isReady, checks } = createCheck()
  for (let count = 0; count < 100; count++) expect(await isReady()).toBe(true)
  expect(checks()).toBe(1)
  await clock.advance(1_000)
  expect(await isReady()).toBe(true)
  expect(checks()).toBe(2)
})

test('the service is not ready while a write fails or takes over a second', async () => {
  const { clock, isReady, become } = createCheck()
  become(async () => {
    throw new Error('full')
  })
  expect(await isReady()).toBe(false)
  become(() => new Promise(() => {}))
  await clock.advance(1_000)
  expect(await clock.runUntil(isReady())).toBe(false)
  become(async () => {})
  await clock.advance(1_000)
  expect(await isReady()).toBe(true)
})

test('the service is not ready while the disk is full, even if a small write succeeds', async () => {
  const { clock, isReady, fill } = createCheck()
  fill(true)
  expect(await isReady()).toBe(false)
  fill(false)
  await clock.advance(1_000)
  expect(await isReady()).toBe(true)
})

import { readFile } from 'node:fs/promises'
import { setTimeout as after } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { countWork, createManualClock } from './clock.js'

test('advance triggers everything that is due in order, and lets the program run in between', async () => {
  const clock = createManualClock(0)
  const seen: [string, number][] = []
  const note = (what: string) => seen.push([what, clock.now()])
  const program = async () => {
    await clock.sleep(10)
    note('first sleep')
    await clock.sleep(5)
    note('second sleep')
  }
  program()
  clock.alarm(12, () => note('alarm'))
  const disarm = clock.alarm(13, () => note('disarmed'))
  disarm()
  await clock.advance(14)
  expect(clock.sleepers).toBe(1)
  await clock.advance(1)
  expect(seen).toEqual([
    ['first sleep', 10],
    ['alarm', 12],
    ['second sleep', 15],
  ])
  expect([clock.monotonic(), clock.sleepers]).toEqual([15, 0])
})

test('runUntil advances from sleep to sleep, waits for files, and skips ahead to no alarm', async () => {
  const clock = createManualClock(0)
  let barked = false
  clock.alarm(1_000, () => {
    barked = true
  })
  const program = async () => {
    await clock.sleep(400)
    for (let count = 0; count < 20; count++) await readFile(import.meta.filename)
    await clock.sleep(500)
    return clock.now()
  }
  expect(await clock.runUntil(program())).toBe(900)
  expect(barked).toBe(false)
  await expect(
    clock.runUntil(clock.sleep(100).then(() => Promise.reject(new Error('its own')))),
  ).rejects.toThrow('its own')
  expect(barked).toBe(true)
})

test('a sleep ends when its signal is aborted, and leaves no sleeper', async () => {
  const clock = createManualClock()
  const stop = new AbortController()
  const sleeping = expect(clock.sleep(10, stop.signal)).rejects.toThrow('enough')
  stop.abort(new Error('enough'))
  await sleeping
  expect(clock.sleepers).toBe(0)
  await expect(clock.sleep(10, stop.signal)).rejects.toThrow('enough')
})

test('runUntil waits for counted work', async () => {
  const clock = createManualClock(0)
  const seen: number[] = []
  const program = async () => {
    for (let count = 0; count < 3; count++) {
      const done = countWork()
      await after(20)
      done()
      seen.push(clock.now())
    }
    await clock.sleep(100)
    return clock.now()
  }
  const sleeping = clock.sleep(50)
  expect(await clock.runUntil(program())).toBe(100)
  await sleeping
  expect(seen).toEqual([0, 0, 0])
})

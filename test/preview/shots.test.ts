import { expect, test } from 'vitest'
import { type Movement, planShots, stageSize, windowOn } from '../../src/preview/video/shots.js'

const PROMPTS = ['a fox', 'a boat at dusk', 'x', '', 'neon city', 'dunes']

test.each([
  [5, 120, 3],
  [10, 240, 4],
] as const)('%i s are %i frames in at least %i shots', (seconds, frames, least) => {
  for (const prompt of PROMPTS) {
    const shots = planShots(prompt, seconds, 0)
    expect(shots.reduce((sum, shot) => sum + shot.frames, 0)).toBe(frames)
    expect(shots.length).toBeGreaterThanOrEqual(least)
    expect(shots[0]?.entrance).toBe('cut')
    // A key frame comes every 24 frames: each shot begins on one.
    for (const shot of shots) expect(shot.frames % 24).toBe(0)
    for (const [index, shot] of shots.entries()) expect(shot.movement).not.toBe(shots[index + 1]?.movement)
  }
})

test.each([1, 2, 3, 7, 14])('every one of %i references is seen, and every shot shows one', (count) => {
  const shots = planShots('a fox', 5, count)
  const seen = new Set(shots.flatMap(({ references }) => references))
  expect([...seen].sort((one, other) => one - other)).toEqual(
    Array.from({ length: count }, (_, index) => index),
  )
  for (const shot of shots) expect(shot.references.length).toBeGreaterThan(0)
})

test.each(['push', 'pull', 'left', 'right', 'rise'] as const)(
  '%s never looks beyond the stage',
  (movement) => {
    for (const size of [
      { width: 1280, height: 720 },
      { width: 1080, height: 1920 },
      { width: 2520, height: 1080 },
    ]) {
      for (let step = 0; step <= 10; step++) {
        for (const depth of [0, 0.3, 1]) {
          const { left, top, width, height } = windowOn(size, movement, depth, step / 10)
          expect(left).toBeGreaterThanOrEqual(0)
          expect(top).toBeGreaterThanOrEqual(0)
          expect(left + width).toBeLessThanOrEqual(1 + 1e-9)
          expect(top + height).toBeLessThanOrEqual(1 + 1e-9)
          expect(Math.round(width * stageSize(size).width)).toBeGreaterThanOrEqual(size.width)
        }
      }
    }
  },
)

test('near planes move more than far ones, and left is not right', () => {
  const size = { width: 1280, height: 720 }
  const travel = (movement: Movement, depth: number) =>
    windowOn(size, movement, depth, 1).left - windowOn(size, movement, depth, 0).left
  expect(travel('right', 1)).toBeGreaterThan(travel('right', 0.1))
  expect(travel('left', 1)).toBeLessThan(0)
  // What does not move stands on whole, even pixels, so that nothing need be sampled.
  const top = windowOn(size, 'right', 1, 0.3).top * stageSize(size).height
  expect(top).toBeCloseTo(Math.round(top / 2) * 2)
})

/**
 * Checks how the work grows with its size, for promises of linear time. Compares processor times of this process, so the
 * result does not depend on how fast or busy the machine is.
 */
import { expect } from 'vitest'

/** Size of the larger work, in units of the smaller one. */
export const LARGER = 10
/** With the square of the size it would be 100. Caches and the garbage collector make linear work look larger. */
const MAX_GROWTH = 30

/** Checks that the processor time of `work` grows with its size and not with the square. */
export const expectLinear = (size: number, work: (size: number) => unknown): Promise<void> =>
  expectLinearTimes(size, (each) => processorTimeOf(() => work(each)))

/** The same for work that measures its own processor time. The last work that it does is the larger one. */
export async function expectLinearTimes(
  size: number,
  timeOf: (size: number) => Promise<number>,
): Promise<void> {
  const few = Math.min(await timeOf(size / LARGER), await timeOf(size / LARGER))
  let many = await timeOf(size)
  // Once more, because other work of this process may have run meanwhile.
  if (many >= few * MAX_GROWTH) many = await timeOf(size)
  expect(many / few).toBeLessThan(MAX_GROWTH)
}

/** Processor time in microseconds. */
async function processorTimeOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/**
 * Cleans up after each test file what all of its tests share. Files that run in one process share the modules of `test/support`, so an
 * `afterAll` of such a module would be registered for the first file alone.
 */
import { onTestFinished, TestRunner } from 'vitest'

const cleanups: (() => unknown)[] = []

/** Runs when the tests of the file have ended, the last one first: a process ends before its folder is removed. */
export const afterFile = (cleanUp: () => unknown): void => void cleanups.push(cleanUp)

/** Runs when the test has ended, or the file where no test has begun: what `beforeAll` makes is shared. */
export function whenOver(cleanUp: () => unknown): void {
  if (TestRunner.getCurrentTest() === undefined) afterFile(cleanUp)
  else onTestFinished(async () => void (await cleanUp()))
}

/** For `setup.ts`. */
export async function cleanUpFile(): Promise<void> {
  const errors: unknown[] = []
  for (const cleanUp of cleanups.splice(0).reverse())
    try {
      await cleanUp()
    } catch (error) {
      errors.push(error)
    }
  if (errors.length > 0) throw new AggregateError(errors, 'The cleanup of a test file failed')
}

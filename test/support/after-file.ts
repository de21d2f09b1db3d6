/**
 * Cleanup after each test file for things that all its tests share. Files that run in one process share the modules of
 * `test/support`, so `afterAll` in such a module would run only after the first file.
 */
import { onTestFinished, TestRunner } from 'vitest'

const cleanups: (() => unknown)[] = []

/**
 * Registers a cleanup for the end of the test file. The last one runs first: a process ends before its folder is
 * removed.
 */
export const afterFile = (cleanUp: () => unknown): void => void cleanups.push(cleanUp)

/** Registers a cleanup for the end of the test. Outside of a test (in `beforeAll`), for the end of the file. */
export function whenOver(cleanUp: () => unknown): void {
  if (TestRunner.getCurrentTest() === undefined) afterFile(cleanUp)
  else onTestFinished(async () => void (await cleanUp()))
}

/** Runs the cleanups of the file. Called by `setup/each-file.ts`. */
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

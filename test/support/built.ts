/** Node 20 runs no TypeScript, so a process that a test starts is bundled first, as the program itself is. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { afterAll } from 'vitest'

/** Call in `beforeAll`. The path of a runnable module, which is gone after the tests of the file. */
export async function built(source: URL): Promise<string> {
  // Within the project, so that packages are found from there.
  const folder = await mkdtemp(join(resolve('node_modules'), '.test-'))
  onceAllRan(() => rm(folder, { recursive: true, force: true }))
  const bundle = await rolldown({
    input: fileURLToPath(source),
    platform: 'node',
    external: /^[a-z@]/,
  })
  await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: 'entry.mjs',
    chunkFileNames: '[name].mjs',
  })
  await bundle.close()
  return join(folder, 'entry.mjs')
}

const leftovers: (() => Promise<void>)[] = []
afterAll(() => Promise.all(leftovers.splice(0).map((clean) => clean())))
const onceAllRan = (clean: () => Promise<void>): void => void leftovers.push(clean)

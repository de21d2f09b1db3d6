/** Node 20 runs no TypeScript, so a process that a test starts is bundled first, as the program itself is. */
import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { afterFile } from './after-file.js'

/** Call in `beforeAll`. The path of a runnable module, which is gone after the tests of the file. */
export async function built(source: URL): Promise<string> {
  // Within the project, so that packages are found from there.
  const folder = await mkdtemp(join(resolve('node_modules'), '.test-'))
  afterFile(() => rm(folder, { recursive: true, force: true }))
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

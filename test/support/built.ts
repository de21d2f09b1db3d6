/** Bundles a TypeScript module that a test starts as a process, because Node 20 cannot run TypeScript. */

import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { afterFile } from './after-file.js'

/** Returns the path of a runnable module, which is removed after the tests of the file. Call it in `beforeAll`. */
export async function built(source: URL): Promise<string> {
  // Inside the project, so that its packages can be imported.
  const folder = await mkdtemp(fileURLToPath(new URL('../../node_modules/.test-', import.meta.url)))
  afterFile(() => rm(folder, { recursive: true, force: true }))
  const bundle = await rolldown({
    input: fileURLToPath(source),
    platform: 'node',
    external: /^[a-z@]/,
    plugins: [
      {
        name: 'raw',
        resolveId: (id, importer) => (id.endsWith('?raw') && importer ? join(dirname(importer), id) : null),
        load: (id) =>
          id.endsWith('?raw')
            ? `export default ${JSON.stringify(readFileSync(id.slice(0, -4), 'utf8'))}`
            : null,
      },
    ],
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
